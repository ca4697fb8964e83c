"""Every panel has a valid query, for metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.charts.cases import CASES, only, rendered
from tests.charts.promtool import check
from tests.charts.test_alerts import exported
from tools.parts.helm import CHART

DASHBOARD = json.loads((CHART / "files" / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    for panel in PANELS:
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]


def filled_in(expression: str) -> str:
    return expression.replace("$__rate_interval", "5m").replace("$namespace", "shop|billing").replace("$sink", ".*")


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{n}", "expr": filled_in(expr)} for n, (_, expr) in enumerate(queries())]
    assert len(rules) > 30
    assert not [rule for rule in rules if "$" in rule["expr"]]
    assert check({"groups": [{"name": "panels", "rules": rules}]}, tmp_path) == ""


def test_panels_use_only_metrics_that_exist() -> None:
    for panel, expression in queries():
        used = set(re.findall(r"\bs3sink_\w+", expression))
        assert used, panel
        assert used <= exported(), panel


def test_every_metric_has_a_panel_or_is_listed_without_one() -> None:
    shown = {name for _, expression in queries() for name in re.findall(r"\bs3sink_\w+", expression)}
    parts = {name for name in exported() if name.endswith(("_sum", "_count"))}
    # A committed offset, or the number of concurrent requests, says little by itself. The operator has the other two
    # for every sink.
    needless = {"s3sink_committed_offset", "s3sink_requests_at_a_time"}
    needless |= {"s3sink_last_flush_timestamp_seconds", "s3sink_oldest_unflushed_seconds"}
    assert exported() - shown - parts == needless


def test_namespace_and_sink_are_variables() -> None:
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert list(variables) == ["datasource", "namespace", "sink"]
    for name in ("namespace", "sink"):
        metrics = set(re.findall(r"\bs3sink_\w+", variables[name]["definition"]))
        assert metrics <= exported()
    for panel, expression in queries():
        if "s3sink_operator_sink_" in expression or "s3sink_operator_" not in expression:
            assert 'namespace=~"$namespace", sink=~"$sink"' in expression, panel


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    expected = ["Overview", "Lag", "Flushes", "Throughput", "Objects", "Retries and errors", "Drivers", "Operator"]
    assert rows == expected


def test_the_config_map_holds_the_dashboard_unchanged() -> None:
    made: dict[str, Any] = only(rendered(CASES["a dashboard"]), "ConfigMap")
    assert json.loads(made["data"]["s3sink.json"]) == DASHBOARD
    assert made["metadata"]["labels"]["dashboards"] == "yes"
    usual = only(rendered({"dashboard": {"enabled": True}}), "ConfigMap")
    assert usual["metadata"]["labels"]["grafana_dashboard"] == "1"
