"""Sixty and more configurations as people have them: manifests and reports are as expected, and hold no secret."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from s3sink_api.spec import check_file
from s3sink_job.convert.configurations import find_configurations
from s3sink_job.convert.documents import read_documents
from s3sink_job.convert.output import conversion_json, conversion_text, folder_of, reports_text
from tests.convert.recording import CORPUS, EXPECTED, SECRET, converted, expected_files, inputs, name_of

FIGURES = Path(__file__).parents[2] / "docs" / "migrate" / "README.md"
each_input = pytest.mark.parametrize("file", inputs(), ids=name_of)


@each_input
def test_manifests_and_report_are_as_expected(file: Path) -> None:
    """`python -m tests.convert.recording` writes them anew; read the differences."""
    conversion = converted(file)
    manifests, report = expected_files(file)
    assert conversion_text(conversion) == manifests.read_text()
    assert reports_text(conversion) + "\n" == report.read_text()


@each_input
def test_the_manifests_pass_the_offline_check(file: Path) -> None:
    sinks = check_file(expected_files(file)[0])
    assert len(sinks) == len(converted(file).sinks)


@each_input
def test_every_key_is_in_the_report_once(file: Path) -> None:
    found = find_configurations(read_documents(file.read_bytes(), name_of(file)), name_of(file))
    for configuration, sink in zip(found.configurations, converted(file).sinks, strict=True):
        reported = Counter(entry.key for entry in sink.report.entries)
        keys = [configuration.written_as.get(key, key) for key in configuration.settings]
        assert {key: reported[key] for key in keys} == dict.fromkeys(keys, 1)
        assert max(reported.values()) == 1
        known = {*keys, *configuration.around}
        assert not [key for key in reported if key not in known and not key.startswith("connect.s3.kcql[")]


@each_input
def test_no_output_has_a_secret(file: Path) -> None:
    conversion = converted(file)
    outputs = [conversion_json(conversion), conversion_text(conversion), reports_text(conversion)]
    outputs += folder_of(conversion).values()
    assert not [text for text in outputs if SECRET in text]


def test_the_corpus_has_secrets_to_lose() -> None:
    assert sum(SECRET in file.read_text() for file in inputs()) >= 20


def test_every_expected_file_has_its_input() -> None:
    known = {path for file in inputs() for path in expected_files(file)}
    assert {path for path in EXPECTED.rglob("*") if path.is_file()} == known


def test_the_figures_in_the_documentation_are_those_of_the_corpus() -> None:
    counts: dict[str, Counter[str]] = {}
    for file in inputs():
        outcomes = {entry.outcome for sink in converted(file).sinks for entry in sink.report.entries}
        worst = next(outcome for outcome in ("Lost", "Different", "Exact") if outcome in outcomes)
        counts.setdefault(file.relative_to(CORPUS).parts[0], Counter())[worst] += 1
    rows = {
        match[1].split()[0].lower(): tuple(map(int, match.group(2, 3, 4, 5)))
        for match in re.finditer(
            r"^\| (\w[\w ]*) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", FIGURES.read_text(), re.MULTILINE
        )
    }
    expected = {
        system: (count.total(), count["Exact"], count["Different"], count["Lost"]) for system, count in counts.items()
    }
    everything = tuple(map(sum, zip(*expected.values(), strict=True)))
    assert rows == {**expected, "all": everything}
    assert everything[0] >= 60


def test_the_report_as_json_has_the_same_figures() -> None:
    file = CORPUS / "confluent" / "registry-login-dlq.json"
    doc = json.loads(conversion_json(converted(file)))
    (sink,) = doc["sinks"]
    report = sink["report"]
    assert report["exact"] + report["different"] + report["lost"] == len(report["keys"])
    assert doc["whole"] == (report["lost"] == 0)
    assert sink["manifest"]["spec"]["destination"]["bucket"] == "payments-lake"
