"""Rules tried out by promtool: which alerts fire, with which series, and when."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.parts.prometheus import promtool_program
from tests.charts.cases import Document, Values, only, rendered

Series = Mapping[str, str]
"""Samples, one a minute, by the name of their series."""


def groups(values: Values | None = None) -> Document:
    """The alerts as a plain Prometheus takes them."""
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
    """What promtool says to them; empty if nothing is wrong."""
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump(rules))
    code, said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(file))
    return "" if code == 0 else said


@dataclass(frozen=True)
class Trial:
    """At this minute of these series exactly these alerts of one name fire."""

    name: str
    alert: str
    series: Series
    minute: int
    expected: tuple[dict[str, str], ...]


def try_out(rules: Document, folder: Path, trials: Iterable[Trial]) -> str:
    """What differs from what is expected, with the names of the trials; empty if nothing does."""
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
