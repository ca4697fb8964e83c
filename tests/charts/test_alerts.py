"""Alerts fire when they should, and not when all is well, as promtool evaluates them."""

from __future__ import annotations

import copy
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from charts.generate import ROOT
from s3sink_job.report.metrics import Metrics
from s3sink_operator.metrics import Metrics as OperatorMetrics
from s3sink_operator.process.watch_liveness import WatchLiveness
from tests.charts.cases import CASES, Document
from tests.charts.promtool import Series, Trial, check, groups, promtool, try_out

SINK = {"namespace": "shop", "sink": "orders"}
HOME = {"namespace": "s3sink-system"}
AT = 'namespace="shop", sink="orders", pod="s3sink-operator-1"'
IN = 'namespace="s3sink-system", pod="s3sink-operator-1"'
LAG, WAIT = f"s3sink_operator_sink_lag_records{{{AT}}}", f"s3sink_operator_sink_lag_seconds{{{AT}}}"
FLUSHED = f"s3sink_operator_sink_last_flush_timestamp_seconds{{{AT}}}"
RETRIES, RESTARTS = f"s3sink_operator_sink_retry_attempts{{{AT}}}", f"s3sink_operator_sink_driver_restarts{{{AT}}}"
READY = f"s3sink_operator_sink_ready{{{AT}}}"
REFUSED, REASON = f"s3sink_operator_sink_spec_refused{{{AT}}}", "SpecRefused"
SILENCE = f"s3sink_operator_watch_silent_seconds{{{IN}}}"
PARTITION = 'namespace="shop", sink="orders", pod="orders-s3sink-1", topic="orders"'
SKIPPED, LOST = f"s3sink_skipped_records_total{{{PARTITION}", f"s3sink_gap_offsets_total{{{PARTITION}"
LETTERS = f"s3sink_dead_lettered_records_total{{{PARTITION}"
SINKS, RECONCILES = f"s3sink_operator_sinks{{{IN}", f"s3sink_operator_reconciles_total{{{IN}"
QUEUE = f"s3sink_operator_queue_seconds_bucket{{{IN}"
SAWTOOTH = " ".join(["0+500x9"] * 12)
GROWS, WAITS = {LAG: "0+100x120"}, {WAIT: "0+60x120", FLUSHED: "0x120"}


def is_in(phase: str, reason: str = "", samples: str = "1x150") -> dict[str, str]:
    return {f's3sink_operator_sink_info{{{AT}, phase="{phase}", reason="{reason or phase}"}}': samples}


@dataclass(frozen=True)
class Story:
    alert: str
    what: str
    series: Series
    minute: int
    labels: dict[str, str] | None = None
    """The series that fire; none if empty."""


STORIES = (
    Story("S3SinkLagGrowing", "it grows and grows", {LAG: "0+100x120"}, 75, SINK),
    Story("S3SinkLagGrowing", "it grew for a short time only", {LAG: "0+100x120"}, 45),
    Story("S3SinkLagGrowing", "records gather until the next flush", {LAG: SAWTOOTH}, 110),
    Story("S3SinkLagGrowing", "a backlog shrinks", {LAG: "100000-500x120"}, 110),
    Story("S3SinkLagGrowing", "it has caught up", {LAG: "0+100x90 0x30"}, 92),
    Story(
        "S3SinkLagGrowing",
        "the operator was restarted meanwhile",
        {LAG: "0+100x50", LAG.replace("-1", "-2"): "_x50 5100+100x60"},
        105,
        SINK,
    ),
    Story("S3SinkPartitionBehind", "others flow", {WAIT: "0+60x120", FLUSHED: "0+60x120"}, 70, SINK),
    Story("S3SinkPartitionBehind", "nothing flows", {WAIT: "0+60x120", FLUSHED: "0x120"}, 70),
    Story("S3SinkPartitionBehind", "it waits for its interval", {WAIT: SAWTOOTH, FLUSHED: "0+60x120"}, 110),
    Story("S3SinkNoFlush", "nothing flows", {WAIT: "0+60x120", FLUSHED: "0x120"}, 70, SINK),
    Story("S3SinkNoFlush", "nothing ever flowed", {WAIT: "0+60x120"}, 70, SINK),
    Story("S3SinkNoFlush", "others flow", {WAIT: "0+60x120", FLUSHED: "0+60x120"}, 70),
    Story("S3SinkNoFlush", "a record comes after hours of peace", {WAIT: "0x100 0+60x20", FLUSHED: "0x120"}, 119),
    *(
        Story(alert, f"it is {phase} by intention", {**series, **is_in(phase)}, 75)
        for phase in ("Paused", "Stopped", "Completed")
        for alert, series in (
            ("S3SinkLagGrowing", GROWS),
            ("S3SinkPartitionBehind", {WAIT: "0+60x120", FLUSHED: "0+60x120"}),
            ("S3SinkNoFlush", WAITS),
            ("S3SinkRetrying", {RETRIES: "5x120"}),
        )
    ),
    Story("S3SinkLagGrowing", "it fails meanwhile", {**GROWS, **is_in("Degraded", "StoreUnavailable")}, 75, SINK),
    *(
        Story(
            "S3SinkLagGrowing",
            f"it catches up {minute - 60} minutes after a pause",
            {
                LAG: "0+100x60 6000-10x60",
                **is_in("Paused", samples="1x60 stale"),
                **is_in("Running", samples="_x60 1x60"),
            },
            minute,
        )
        for minute in (80, 110)
    ),
    Story(
        "S3SinkLagGrowing",
        "it does not keep up after a pause",
        {LAG: "0+100x150", **is_in("Paused", samples="1x60 stale"), **is_in("Running", samples="_x60 1x90")},
        140,
        SINK,
    ),
    Story("S3SinkNoFlush", "it fails meanwhile", {**WAITS, **is_in("Failed", "BucketMissing")}, 70, SINK),
    Story("S3SinkRetrying", "it fails", {RETRIES: "0+1x30", **is_in("Degraded", "StoreUnavailable")}, 25, SINK),
    Story("S3SinkRetrying", "it failed, and then it did not", {RETRIES: "0+1x20 0x20", **is_in("Running")}, 25),
    Story("S3SinkRecordsSkipped", "the first one", {SKIPPED + ', partition="0"}': "_x30 3x60"}, 31, SINK),
    Story("S3SinkRecordsSkipped", "some more", {SKIPPED + ', partition="0"}': "3x90 3+1x5"}, 95, SINK),
    Story("S3SinkDeadLetters", "the first one", {LETTERS + ', partition="0"}': "_x30 3x60"}, 31, SINK),
    Story("S3SinkDeadLetters", "long ago", {LETTERS + ', partition="0"}': "_x30 3x90"}, 100),
    Story("S3SinkRecordsSkipped", "long ago", {SKIPPED + ', partition="0"}': "_x30 3x90"}, 100),
    Story("S3SinkRecordsLost", "retention passed", {LOST + ', partition="3"}': "_x5 1000x60"}, 6, SINK),
    Story("S3SinkRecordsLost", "nothing is lost", {LOST + ', partition="3"}': "0x60"}, 50),
    Story("S3SinkDriverRestarting", "it crashes", {RESTARTS: "0 1 2 3 3x60"}, 10, SINK),
    Story("S3SinkDriverRestarting", "it crashed once", {RESTARTS: "0 1 1x60"}, 10),
    Story("S3SinkDriverRestarting", "a new pod starts from nothing", {RESTARTS: "9x90 0x60"}, 95),
    Story("S3SinkDriverRestarting", "it is stopped since", {RESTARTS: "0 1 2 3 stale", **is_in("Stopped")}, 10),
    Story("S3SinkNotReady", "its driver is not well", {READY: "0x30", **is_in("Failed", "BucketMissing")}, 20, SINK),
    Story("S3SinkNotReady", "nobody knows", {READY: "-1x30", **is_in("Degraded", "NoReport")}, 20, SINK),
    Story(
        "S3SinkNotReady",
        "causes take turns",
        {
            READY: "0x60",
            **is_in("Degraded", "OOMKilled", " ".join(["1 stale"] * 15)),
            **is_in("Starting", samples=" ".join(["_ 1 stale"] + ["1 stale"] * 14)),
        },
        20,
        SINK,
    ),
    Story("S3SinkNotReady", "it is stopped", {READY: "0x30", **is_in("Stopped")}, 20),
    Story("S3SinkNotReady", "its schedule is paused", {READY: "0x30", **is_in("Paused")}, 20),
    Story("S3SinkNotReady", "it has no pod yet", {READY: "0x30", **is_in("Pending", "Creating")}, 20),
    Story("S3SinkNotReady", "it starts", {READY: "0x10 1x30", **is_in("Running")}, 20),
    Story(
        "S3SinkNotReady",
        "a change is refused, and the driver before it reports",
        {READY: "0x30", LAG: "5x30", **is_in("Degraded", "SpecRefused")},
        20,
    ),
    Story(
        "S3SinkNotReady",
        "a change is refused, and the driver before it is silent",
        {READY: "0x30", **is_in("Degraded", "SpecRefused")},
        20,
        SINK,
    ),
    Story(
        "S3SinkNotReady",
        "a change is refused, and the driver before it failed",
        {READY: "0x30", LAG: "5x30", **is_in("Failed", "SpecRefused")},
        20,
        SINK,
    ),
    Story("S3SinkSpecRefused", "a change is refused", {REFUSED: "0x5 1x30", **is_in("Degraded", REASON)}, 15, SINK),
    Story("S3SinkSpecRefused", "nothing runs", {REFUSED: "1x30", **is_in("Failed", REASON)}, 10, SINK),
    Story("S3SinkSpecRefused", "it is paused", {REFUSED: "1x30", **is_in("Paused", REASON)}, 10, SINK),
    Story("S3SinkSpecRefused", "it was mended", {REFUSED: "1x8 0x30", **is_in("Running")}, 12),
    Story("S3SinkSpecRefused", "it was refused a moment ago", {REFUSED: "0x5 1x30", **is_in("Degraded", REASON)}, 8),
    Story("S3SinkSpecRefused", "it is stopped", {REFUSED: "1x30", **is_in("Stopped")}, 20),
    Story("S3SinkStuck", "pods cannot be made", {READY: "0x90", **is_in("Pending", "FailedCreate")}, 70, SINK),
    Story("S3SinkStuck", "a new one starts", is_in("Pending", "Creating", "_x30 1x10 stale"), 70),
    Story("S3SinkStuck", "its schedule has not begun", is_in("Pending", "WaitingForSchedule"), 70),
    Story("S3SinkOperatorDown", "nobody scrapes it", {"up": "0x30"}, 10, HOME),
    Story("S3SinkOperatorDown", "it went", {SINKS + ', phase="Running"}': "1x10 stale"}, 20, HOME),
    Story("S3SinkOperatorDown", "it is there, without a sink", {SINKS + ', phase="Running"}': "0x30"}, 10),
    Story("S3SinkOperatorErrors", "it fails", {RECONCILES + ', outcome="error"}': "0+1x60"}, 30, HOME),
    Story("S3SinkOperatorErrors", "it works", {RECONCILES + ', outcome="ok"}': "0+9x60"}, 30),
    Story(
        "S3SinkOperatorSlow",
        "sinks wait",
        {QUEUE + ', le="30"}': "0x60", QUEUE + ', le="120"}': "0+9x60", QUEUE + ', le="+Inf"}': "0+9x60"},
        40,
        HOME,
    ),
    Story(
        "S3SinkOperatorSlow",
        "sinks do not wait",
        {QUEUE + ', le="30"}': "0+9x60", QUEUE + ', le="120"}': "0+9x60", QUEUE + ', le="+Inf"}': "0+9x60"},
        40,
    ),
    Story("S3SinkOperatorWatchSilent", "one is dead", {SILENCE: "0+60x3 0x10"}, 8, HOME),
    Story("S3SinkOperatorWatchSilent", "it was, before a restart", {SILENCE: "0+60x3 0x60"}, 30),
    Story("S3SinkOperatorWatchSilent", "each ends now and then", {SILENCE: "0 30 5 35 10 30 0x10"}, 8),
)


@cache
def rules() -> Document:
    return groups()


def rules_of(document: Document) -> dict[str, Document]:
    return {rule["alert"]: rule for group in document["groups"] for rule in group["rules"]}


def without_words(document: Document) -> Document:
    bare = copy.deepcopy(document)
    for rule in rules_of(bare).values():
        del rule["annotations"]
    return bare


def exported() -> set[str]:
    """The names of all scraped series, including the parts of histograms."""
    registry = CollectorRegistry()
    OperatorMetrics(lambda: (), registry)
    WatchLiveness((), 0.0).export(registry)
    names: set[str] = set()
    for family in (*registry.collect(), *Metrics().registry.collect()):
        endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        names |= {family.name + ending for ending in endings}
    return names


@pytest.mark.parametrize("case", ["alerts", "quick alerts", "no alert"])
def test_promtool_accepts_the_rules(case: str, tmp_path: Path) -> None:
    assert check(groups(CASES[case]), tmp_path) == ""


def trials(*, silent: bool = False) -> Iterator[Trial]:
    """All stories; with `silent` only those that fire, as if they should not."""
    for story in STORIES:
        severity = {"severity": rules_of(rules())[story.alert]["labels"]["severity"]}
        expected = () if silent or story.labels is None else (story.labels | severity,)
        if not silent or story.labels:
            yield Trial(f"{story.alert}: {story.what}", story.alert, story.series, story.minute, expected)


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    assert try_out(without_words(rules()), tmp_path, trials()) == ""


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    assert {story.alert for story in STORIES if story.labels} == set(rules_of(rules()))
    assert {story.alert for story in STORIES if not story.labels} == set(rules_of(rules()))


def test_descriptions_of_alerts_are_filled_in(tmp_path: Path) -> None:
    """promtool prints the alerts that it did not expect."""
    said = try_out(rules(), tmp_path, trials(silent=True))
    assert "error expanding template" not in said
    for story in (story for story in STORIES if story.labels):
        words = said.partition(f"{story.alert}: {story.what}")[2].partition("Annotations:")[2].partition("\n")[0]
        assert not {"summary", "description", "runbook"} - set(re.findall(r"\b(\w+)=\"", words)), story
        assert not [value for value in (story.labels or {}).values() if value not in words], story


def test_an_alert_names_the_cause_of_an_unhealthy_sink(tmp_path: Path) -> None:
    said = try_out(rules(), tmp_path, trials(silent=True))
    for story, cause in (
        ("S3SinkNotReady: nobody knows", "Degraded (NoReport)"),
        ("S3SinkNotReady: its driver is not well", "Failed (BucketMissing)"),
        ("S3SinkSpecRefused: nothing runs", "Failed (SpecRefused)"),
        ("S3SinkStuck: pods cannot be made", "FailedCreate"),
    ):
        assert cause in said.partition(story)[2].partition("Annotations:")[2].partition("\n")[0], story


def test_rules_use_only_metrics_that_exist() -> None:
    for name, rule in rules_of(rules()).items():
        used = set(re.findall(r"\bs3sink_\w+", rule["expr"]))
        assert used, name
        assert used <= exported(), name


def test_the_runbook_page_of_an_alert_exists() -> None:
    for name, rule in rules_of(rules()).items():
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        titles = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.M)
        assert not anchor or anchor in {title.lower().replace(" ", "-") for title in titles}, name
    annotations = rules_of(groups(CASES["quick alerts"]))["S3SinkNoFlush"]["annotations"]
    assert annotations["runbook_url"] == "https://git.example.com/s3sink/docs/troubleshooting.md"


def test_every_alert_is_documented() -> None:
    table = (ROOT / "docs" / "chart.md").read_text()
    assert re.findall(r"^\| `(S3Sink\w+)` \|", table, re.M) == list(rules_of(rules()))


def test_thresholds_and_times_come_from_the_values() -> None:
    quick = rules_of(groups(CASES["quick alerts"]))
    assert {rule["for"] for rule in quick.values()} == {"7s"}
    assert {tuple(rule["labels"].items()) for rule in quick.values()} == {(("severity", "page"), ("team", "data"))}
    assert "[10s] offset 10s" in quick["S3SinkLagGrowing"]["expr"]
    assert "> 5\n" in quick["S3SinkLagGrowing"]["expr"]
    assert "> 20.5\n" in quick["S3SinkPartitionBehind"]["expr"]


def scrape_configuration() -> Document:
    """The scrape configuration in docs/chart.md."""
    page = (ROOT / "docs" / "chart.md").read_text()
    block = re.search(r"^    scrape_configs:\n(?:    .*\n)+", page, re.M)
    assert block is not None
    loaded: Document = yaml.safe_load(textwrap.dedent(block[0]))
    return loaded


def test_promtool_accepts_the_documented_scrape_configuration(tmp_path: Path) -> None:
    given = scrape_configuration()
    # Debian's Prometheus has no discovery of pods: everything else is checked.
    for job in given["scrape_configs"]:
        del job["kubernetes_sd_configs"]
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(given))
    code, said = promtool("check", "config", str(tmp_path / "prometheus.yaml"))
    assert code == 0, said
