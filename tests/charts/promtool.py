"""Tests rules with promtool: which alerts fire, for which series, and when."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.charts.cases import Document, Values, only, rendered
from tools.parts.prometheus import promtool_program

Series = Mapping[str, str]
"""Samples, one per minute, by series."""


def groups(values: Values | None = None) -> Document:
    """The chart's alerts as a rule file of Prometheus."""
    given = values or {}
    alerts = {**given.get("alerts", {}), "configMap": {"enabled": True}}
    made = only(rendered({**given, "alerts": alerts}), "ConfigMap", "s3sink-operator-alerts")
    loaded: Document = yaml.safe_load(made["data"]["alerts.yaml"])
    return loaded


def promtool(*arguments: str) -> tuple[int, str]:
    command = [str(promtool_program()), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def check(rules: Document, folder: Path) -> str:
    """promtool's errors; empty if there are none."""
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump(rules))
    code, said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(file))
    return "" if code == 0 else said


@dataclass(frozen=True)
class Trial:
    """At this minute of these series, exactly these alerts of one name fire."""

    name: str
    alert: str
    series: Series
    minute: int
    expected: tuple[dict[str, str], ...]


def try_out(rules: Document, folder: Path, trials: Iterable[Trial]) -> str:
    """promtool's failures, with the names of the cases; empty if there are none."""
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    tests = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [_test(trial) for trial in trials]}
    (folder / "test.yaml").write_text(yaml.safe_dump(tests))
    code, said = promtool("test", "rules", str(folder / "test.yaml"))
    return "" if code == 0 else said


def _test(trial: Trial) -> Document:
    expected = [{"exp_labels": labels} for labels in trial.expected]
    wanted = {"eval_time": f"{trial.minute}m", "alertname": trial.alert, "exp_alerts": expected}
    series = [{"series": name, "values": values} for name, values in trial.series.items()]
    return {"name": trial.name, "interval": "1m", "input_series": series, "alert_rule_test": [wanted]}
