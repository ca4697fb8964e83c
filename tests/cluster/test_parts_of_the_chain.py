"""`make e2e` is several runs of pytest, and one result."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.chain.parts import Parts

OUTCOMES = {"good": "pass", "bad": "assert False", "stopped": "raise KeyboardInterrupt"}


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    monkeypatch.chdir(tmp_path)
    for name, body in OUTCOMES.items():
        (tmp_path / f"test_{name}.py").write_text(f"def test_it():\n    open({name!r}, 'x')\n    {body}\n")
    return Parts()


def test_a_failed_part_is_named_and_does_not_keep_the_next_from_running(parts: Parts, tmp_path: Path) -> None:
    for name in ("bad", "good"):
        parts.run(name, f"test_{name}.py")
    assert parts.failed == ["bad"]
    assert (tmp_path / "good").exists()


def test_ctrl_c_is_no_success_and_leaves_out_the_rest(parts: Parts, tmp_path: Path) -> None:
    for name in ("good", "stopped", "bad"):
        parts.run(name, f"test_{name}.py")
    assert parts.failed == ["stopped"]
    assert not (tmp_path / "bad").exists()


def test_a_part_without_tests_is_a_failure(parts: Parts) -> None:
    parts.run("none", "test_good.py", "-k", "nothing")
    assert parts.failed == ["none"]
