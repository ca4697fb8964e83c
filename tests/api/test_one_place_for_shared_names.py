"""Names that operator and job must agree on stand in the contract, and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3sink_api import conditions, environment, exit_codes, group, labels

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "sinkjob").rglob("*.py"), *(ROOT / "operator").rglob("*.py")])
CONDITIONS = {*conditions.ALWAYS, conditions.OFFSETS_PUBLISHED}
LABELS = {value for name, value in vars(labels).items() if name.isupper() and "/" in str(value)}
EXIT_CODES = {name for name in vars(exit_codes) if name.isupper()}


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text of a module but docstrings, and the values of spec.delivery, which bear the name of a condition."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    deliveries = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "delivery"
        for value in node.comparators
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | deliveries:
            yield node.lineno, node.value


def exit_code_literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Numbers that are given to an exit, or are called like an exit code."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in {"exit", "_exit", "Exit"}:
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
            case ast.Assign(targets=targets, value=value) if EXIT_CODES & {
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }:
                given = [*value.elts] if isinstance(value, ast.Tuple) else [value]
            case _:
                continue
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, int):
                yield node.lineno, str(value.value)


def written_again(path: Path) -> Iterator[str]:
    name, tree = str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))
    for line, text in texts(tree):
        ours = re.fullmatch(rf"{environment.PREFIX}[A-Z0-9_]*", text)
        if ours or text in CONDITIONS | LABELS | {group.API_VERSION}:
            yield f"{name}:{line}: {text}"
    for line, code in exit_code_literals(tree):
        yield f"{name}:{line}: exit code {code}"


def test_no_shared_name_is_written_a_second_time() -> None:
    assert [found for path in SOURCES for found in written_again(path)] == []


def test_a_second_writing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""S3SINK_GRACE of Ready."""\n'
        'GRACE = "S3SINK_GRACE"\n'
        'reporter.condition("CaughtUp", True)\n'
        'LABEL = "s3sink.dev/sink"\n'
        "DONE, FAILED = 0, 1\n"
        "raise typer.Exit(2)\n"
        "raise typer.Exit(exit_codes.FINAL)\n"
    )
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert sorted(written_again(module)) == [
        "module.py:2: S3SINK_GRACE",
        "module.py:3: CaughtUp",
        "module.py:4: s3sink.dev/sink",
        "module.py:5: exit code 0",
        "module.py:5: exit code 1",
        "module.py:6: exit code 2",
    ]
