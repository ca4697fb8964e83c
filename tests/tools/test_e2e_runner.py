"""`make e2e`: several runs of pytest give one result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.e2e import PytestRuns

OUTCOMES = {"good": "pass", "bad": "assert False", "stopped": "raise KeyboardInterrupt"}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PytestRuns:
    monkeypatch.chdir(tmp_path)
    for name, body in OUTCOMES.items():
        (tmp_path / f"test_{name}.py").write_text(f"def test_it():\n    open({name!r}, 'x')\n    {body}\n")
    return PytestRuns()


def test_a_failed_run_is_named_and_the_next_still_runs(runs: PytestRuns, tmp_path: Path) -> None:
    for name in ("bad", "good"):
        runs.run(name, f"test_{name}.py")
    assert runs.failed == ["bad"]
    assert (tmp_path / "good").exists()


def test_ctrl_c_is_a_failure_and_skips_the_rest(runs: PytestRuns, tmp_path: Path) -> None:
    for name in ("good", "stopped", "bad"):
        runs.run(name, f"test_{name}.py")
    assert runs.failed == ["stopped"]
    assert not (tmp_path / "bad").exists()


def test_a_run_without_tests_is_a_failure(runs: PytestRuns) -> None:
    runs.run("none", "test_good.py", "-k", "nothing")
    assert runs.failed == ["none"]
