"""Nothing but tests needs a test: the folders `tests` and `e2e` can be deleted, and all else still works.

import-linter checks the packages of the product and `tools`; here are the places that it does not read.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
TESTS = {"tests", "e2e"}
PROGRAMS = [
    path for folder in ("benchmarks", "charts", "deploy", "examples") for path in PROJECT.glob(f"{folder}/**/*.py")
]
TEXTS = [PROJECT / "Dockerfile", *PROJECT.glob("tools/image/[bs]*/*"), *PROJECT.glob("charts/s3sink-operator/**/*")]


def imported(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_program_imports_no_test(path: Path) -> None:
    assert not imported(path.read_text()) & TESTS


@pytest.mark.parametrize("path", [path for path in TEXTS if path.is_file()], ids=lambda path: path.name)
def test_image_and_chart_use_no_file_of_a_test(path: Path) -> None:
    assert not re.search(r"(?<![\w/.-])(tests|e2e)[/.]\w", path.read_text().replace("templates/tests/", ""))
