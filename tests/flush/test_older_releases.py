"""Rollback and upgrade: what one release wrote to the bucket, read by the code of another.

The other release is the frozen one (`tools/releases`), in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from s3sink_api.spec import Spec, parse
from s3sink_job.flush.manifest import Manifest, manifest_from_json
from s3sink_job.flush.refresh import begin_run
from s3sink_job.flush.rollback import SINCE_0_2
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.statefile import state_from_json, state_to_json
from s3sink_job.flush.transitions import commit, record_reset
from s3sink_job.flush.transitions import published as published_state
from s3sink_job.task.encoding import Encoding, encoding_of
from s3sink_job.task.encoding_documents import encoding_from_doc, encoding_to_doc, whole_doc
from tests.flush.examples import gap, manifest, object_entry, slice_entry, state_of
from tools.releases import frozen_releases

STAMP = 1_794_802_854_712
RESET, REFRESH = "a reset", "a full refresh"

OLD_STYLE: dict[str, dict[str, Any]] = {
    "the least": {},
    "Parquet": {"format": {"type": "Parquet", "compression": {"codec": "Brotli", "level": 4}}},
    "Parquet by a schema": {
        "source": {"value": {"schema": '{"type": "object", "properties": {"n": {"type": "integer"}}}'}},
        "format": {"parquet": {"rowGroupBytes": "8Mi", "dictionary": False}, "columns": {"meta": "Quix"}},
    },
    "Json": {"format": {"type": "Json", "compression": {"codec": "Zstd", "level": 3}, "columns": {"meta": "Kafka"}}},
    "Json by windows": {"format": {"type": "Json"}, "flush": {"recordWindow": "1h"}},
    "Text": {"format": {"type": "Text", "compression": {"codec": "Gzip"}}, "source": {"value": {"format": "String"}}},
    "all that goes without saying": {
        "format": {"type": "Json", "envelope": {"enabled": False}, "columns": {"meta": "None", "flatten": False}},
        "layout": {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}], "objectName": "Offset"},
        "nullValues": "Write",
    },
}

NEW: dict[str, dict[str, Any]] = {
    "another format": {"format": {"type": "Avro"}},
    "objects of one record": {"format": {"type": "Bytes"}},
    "a CSV of one's own": {"format": {"type": "Csv", "csv": {"header": False}}},
    "another codec": {"format": {"type": "Json", "compression": {"codec": "Bzip2"}}},
    "timestamps in microseconds": {"format": {"parquet": {"timestamps": "Micros"}}},
    "Airbyte's columns": {"format": {"type": "Json", "columns": {"meta": "Airbyte"}}},
    "Airbyte's columns, flat": {"format": {"type": "Parquet", "columns": {"meta": "Airbyte", "flatten": True}}},
    "an envelope": {"format": {"type": "Json", "envelope": {"enabled": True}}},
    "tombstones kept apart": {"nullValues": "Separate"},
    "folders": {"layout": {"partitionBy": [{"type": "Topic"}, {"type": "Key"}]}},
    "names": {"layout": {"objectName": "Upload"}},
    "an extension": {"format": {"type": "Json"}, "layout": {"extension": ".ndjson"}},
    "a route": {"routes": [{"topics": ["orders"], "destination": {"prefix": "elsewhere"}}]},
    "dead letters": {"errors": {"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter"}}},
    "a transform": {"transform": {"where": "a > 0"}},
    "another bucket": {"routes": [{"topics": ["orders"], "destination": {"bucket": "vault"}}]},
}

OLD_CODE = """
import dataclasses, json, sys
import s3sink_job
from s3sink_job.encoding import Encoding, encoding_from_doc, encoding_of
from s3sink_job.errors import S3SinkError
from s3sink_job.flush.manifest import manifest_from_json
from s3sink_job.flush.state import state_from_json
from s3sink_job.spec import SpecError, parse

def told(act):
    try:
        return act()
    except (S3SinkError, SpecError, TypeError) as error:
        return {"reason": getattr(error, "reason", type(error).__name__), "words": str(error)}

def read(case):
    state = state_from_json(case["state"].encode(), "the state")
    manifest = manifest_from_json(case["manifest"].encode(), "the manifest")
    encoding = encoding_from_doc(manifest.encoding)
    return {
        "state": state.to_json().decode(),
        "manifest": manifest.to_json().decode(),
        "meant": encoding == encoding_of(parse(case["document"]).spec),
        "extension": encoding.extension,
    }

def write(case):
    manifest = manifest_from_json(case["manifest"].encode(), "the manifest")
    encoding = encoding_of(parse(case["document"]).spec).to_doc()
    return dataclasses.replace(manifest, encoding=encoding).to_json().decode()

def spec(case):
    parse(case["document"])

answers = {
    name: {act.__name__: told(lambda: act(case)) for act in (read, write, spec)}
    for name, case in json.load(sys.stdin).items()
}
fields = [field.name for field in dataclasses.fields(Encoding)]
json.dump({"from": s3sink_job.__file__, "fields": fields, "answers": answers}, sys.stdout)
"""


def document(changes: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "source": {"bootstrapServers": "kafka:9092", "topics": ["orders"], **changes.get("source", {})},
        "destination": {"bucket": "lake", "prefix": "raw"},
    }
    spec |= {name: value for name, value in changes.items() if name != "source"}
    return {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": {"name": "sink"}, "spec": spec}


def spec_of(changes: dict[str, Any]) -> Spec:
    return parse(document(changes)).spec


def stamped(spec: Spec) -> Encoding:
    """As the driver has it while it flushes."""
    return encoding_of(spec).at(STAMP)


def written(spec: Spec) -> tuple[SinkState, Manifest]:
    """A flush with something of everything, and the state that names it as being published."""
    routed = {topic: encoding_to_doc(stamped(spec.for_route(route))) for route in spec.routes for topic in route.topics}
    entry = object_entry(5, 8)
    if spec.routes and (own := spec.routes[0].destination) and own.bucket:
        entry = replace(entry, bucket=own.bucket)
    if spec.flush.record_window:
        entry = replace(entry, group=("1794801600000",))
    before = state_of(5)
    part = replace(slice_entry(5, 9), skipped=(6,))
    if spec.errors.dead_letter:
        entry, part = replace(entry, letters="Parquet"), replace(part, letters=(7,))
    flush = manifest(slices=(part,), objects=(entry,), gaps=(gap(9, 12),))
    flush = replace(
        flush, encoding=encoding_to_doc(stamped(spec)), routed=routed, stamp=STAMP, schemas={"orders": "f00d"}
    )
    return commit(before, flush), flush


@dataclass(frozen=True)
class Release:
    """What the other release made of each case."""

    fields: tuple[str, ...]
    answers: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """All cases in one process."""
    folder = tmp_path_factory.mktemp("0.1.0")
    (tree,) = (release.tree for release in frozen_releases() if release.version == "0.1.0")
    with tarfile.open(tree) as archive:
        archive.extractall(folder, filter="data")
    done = subprocess.run(
        [sys.executable, "-c", OLD_CODE],
        input=json.dumps(
            {RESET: _reset_case(), REFRESH: _refresh_case()}
            | {name: _case(each) for name, each in (OLD_STYLE | NEW).items()}
        ),
        env={**os.environ, "PYTHONPATH": str(folder / "sinkjob")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert Path(answer["from"]).is_relative_to(folder)
    return Release(tuple(answer["fields"]), answer["answers"])


def _case(changes: dict[str, Any]) -> dict[str, Any]:
    state, flush = written(spec_of(changes))
    return {"document": document(changes), "state": state_to_json(state).decode(), "manifest": flush.to_json().decode()}


def _reset_case() -> dict[str, Any]:
    """A sink that uses nothing new and was reset once; its manifest still has the nonce."""
    state, flush = written(spec_of({}))
    once = record_reset(published_state(state), "again", STAMP / 1000)
    asking = document({"reset": {"nonce": "again"}})
    return {"document": asking, "state": state_to_json(once).decode(), "manifest": flush.to_json().decode()}


def _refresh_case() -> dict[str, Any]:
    """A sink that uses nothing new and is being refreshed."""
    state, flush = written(spec_of({}))
    begun = begin_run(published_state(state), "run", {}, {}, {}, STAMP / 1000)
    asking = document({"mode": "FullRefresh", "run": "Once"})
    return {"document": asking, "state": state_to_json(begun).decode(), "manifest": flush.to_json().decode()}


@pytest.mark.parametrize("name", OLD_STYLE)
def test_rollback_an_older_release_reads_a_flush_that_uses_nothing_new(release: Release, name: str) -> None:
    spec = spec_of(OLD_STYLE[name])
    state, flush = written(spec)
    read = release.answers[name]["read"]
    assert "words" not in read, read
    assert read["meant"], "it would write a lost object just as its own"
    assert read["extension"] == encoding_of(spec).extension

    # It wrote both again, and dropped nothing but the stamps.
    again = manifest_from_json(read["manifest"].encode(), "the manifest")
    assert again == replace(flush, stamp=0)
    assert state_from_json(read["state"].encode(), "the state") == replace(state, stamp=0)


@pytest.mark.parametrize("name", OLD_STYLE)
def test_upgrade_what_an_older_release_wrote_is_read_as_it_meant_it(release: Release, name: str) -> None:
    spec = spec_of(OLD_STYLE[name])
    read = manifest_from_json(release.answers[name]["write"].encode(), "the manifest")
    assert encoding_from_doc(read.encoding) == encoding_of(spec)
    assert (read.routed, read.stamp) == ({}, 0)
    assert read.format_version == 1, "and written again, it can be rolled back still"


@pytest.mark.parametrize("name", NEW)
def test_rollback_an_older_release_refuses_a_flush_that_uses_something_new(release: Release, name: str) -> None:
    read, refused = release.answers[name]["read"], release.answers[name]["spec"]
    assert read["reason"] == "NewerFormat"
    assert "the manifest has format version 2" in read["words"]
    assert "upgrade s3sink" in read["words"]
    assert refused["reason"] == "InvalidSpec"
    assert "not built yet" in refused["words"] or "unknown field" in refused["words"]


def test_rollback_an_older_release_refuses_a_sink_that_was_reset(
    release: Release,
) -> None:
    read, refused = release.answers[RESET]["read"], release.answers[RESET]["spec"]
    assert read["reason"] == "NewerFormat"
    assert "the state has format version 2" in read["words"]
    assert "run a newer s3sink; nothing was changed" in read["words"]
    assert "spec.reset: not built yet" in refused["words"]


def test_rollback_an_older_release_refuses_a_sink_that_was_refreshed(release: Release) -> None:
    read, refused = release.answers[REFRESH]["read"], release.answers[REFRESH]["spec"]
    assert read["reason"] == "NewerFormat"
    assert "the state has format version 4" in read["words"]
    assert "spec.mode: FullRefresh is not built yet" in refused["words"]


@pytest.mark.parametrize("name", OLD_STYLE | NEW)
def test_encodings_are_read_as_they_were_written(name: str) -> None:
    """Fields that are left out have their defaults. The stamp is kept where folders or names use it."""
    encoding = stamped(spec_of((OLD_STYLE | NEW)[name]))
    read = encoding_from_doc(json.loads(json.dumps(encoding_to_doc(encoding))))
    usual = "layout" not in encoding_to_doc(encoding)
    assert read == (encoding.at(0) if usual else encoding)


def test_every_new_field_of_the_encoding_is_listed_as_new(release: Release) -> None:
    assert set(whole_doc(encoding_of(spec_of({})))) == {*release.fields, *SINCE_0_2}
