"""What would become of dead letters, by the columns that the sink has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from s3sink_api.spec import parse
from s3sink_job.base.secrets import Secrets
from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns
from s3sink_job.kafka.letter_topic import CONTEXT
from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.replay.columns import changed_column, starting_columns
from s3sink_job.replay.letters import LetterGroup, StoredLetter, grouped
from s3sink_job.replay.preview import Preview, Previewer
from s3sink_job.replay.topic_letters import context_of
from s3sink_job.task.routing import Routing
from s3sink_job.task.slice_tasks import SliceTasks
from tests.api.documents import minimal

PLACE = PartitionGeneration("orders", 1, 0)


def letter(offset: int, value: Any, headers: Any = ()) -> StoredLetter:
    raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return StoredLetter(PLACE, offset, 0, None, raw, headers, "NotJson")


def columns(**kinds: pa.DataType) -> KnownColumns:
    return KnownColumns(pa.struct(list(kinds.items())))


def preview(letters: list[StoredLetter], known: KnownColumns, folder: Path, **spec: Any) -> Preview:
    document = minimal()
    sink = parse({**document, "spec": {**document["spec"], "format": {"type": "Parquet"}, **spec}})
    routing = Routing(sink.spec)
    group = LetterGroup(tuple(letters))
    tasks = SliceTasks(sink, Secrets(str(folder)), routing)
    task = tasks.task((group.slice,), "1-a", routing.encodings([PLACE.topic]).at(0), {}, conditional=True)
    previewer = Previewer(task.settings, task.settings.schema_access())
    return previewer.preview(group, task.target(PLACE.topic), known)


def test_a_record_that_would_change_a_column_stays_and_the_others_do_not(tmp_path: Path) -> None:
    letters = [letter(3, {"n": 2}), letter(5, {"n": "text"}), letter(9, {"n": 3, "new": 1.5}), letter(11, b"{broken")]
    found = preview(letters, columns(n=pa.int64()), tmp_path)
    assert sorted(found.groups) == [3, 9]
    assert {offset: fault.reason for offset, fault in found.faults.items()} == {5: "ColumnWouldChange", 11: "NotJson"}
    assert "column n" in found.faults[5].message
    assert found.columns == columns(n=pa.int64(), new=pa.float64())


def test_a_tombstone_that_would_be_left_out_stays_a_dead_letter(tmp_path: Path) -> None:
    found = preview([letter(1, None), letter(2, {"n": 1})], NO_COLUMNS, tmp_path, nullValues="Skip")
    assert (list(found.groups), found.faults[1].reason) == ([2], "NullValue")


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (columns(a=pa.int64()), columns(a=pa.int64(), b=pa.string()), ""),
        (columns(a=pa.null()), columns(a=pa.string()), ""),
        (columns(a=pa.int64()), columns(a=pa.float64()), "a"),
        (columns(a=pa.int64()), columns(), "a"),
        (columns(a=pa.struct([("b", pa.int64())])), columns(a=pa.struct([("b", pa.string())])), "a.b"),
        (columns(a=pa.struct([("b", pa.int64())])), columns(a=pa.struct([("b", pa.int64()), ("c", pa.int64())])), ""),
        (columns(a=pa.list_(pa.int64())), columns(a=pa.list_(pa.float64())), "a"),
        (columns(a=pa.map_(pa.string(), pa.int32())), columns(a=pa.map_(pa.string(), pa.int64())), "a"),
    ],
)
def test_the_changed_column_is_named(before: KnownColumns, now: KnownColumns, changed: str) -> None:
    assert changed_column(before, now) == changed


def test_columns_of_earlier_replays_never_change_those_of_the_sink() -> None:
    sinks = columns(a=pa.int64())
    added = columns(a=pa.int64(), b=pa.string())
    assert starting_columns(sinks, added, typed=False) == added
    assert starting_columns(sinks, columns(a=pa.string()), typed=False) == sinks
    assert starting_columns(None, None, typed=False) == NO_COLUMNS


def test_a_dead_letter_that_is_there_twice_counts_once() -> None:
    (group,) = grouped([letter(5, 1), letter(2, 2), letter(5, 1)])
    assert [one.offset for one in group.letters] == [2, 5]


def test_ids_of_schemas_come_from_the_last_header_of_their_name() -> None:
    headers = [("__value_schema_id", b"\x01old"), ("__value_schema_id", b"\x01new"), ("apicurio.key.globalId", b"7")]
    headers += [("apicurio.protobuf.type.key", b"Old"), ("apicurio.protobuf.type.key", b"Key")]
    (group,) = grouped([letter(1, 1, headers)])
    (found,) = group.batch().to_pylist()
    assert (found["value_schema_id"], found["key_schema_id"]) == (b"\x01new", b"g7")
    assert (found["value_message"], found["key_message"]) == (None, b"Key")


def test_dead_letters_are_decoded_some_megabytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3sink_job.replay.letters.MOST_BYTES", 10)
    groups = grouped([letter(n, b"12345") for n in range(5)] + [letter(9, b"x" * 50)])
    assert [[one.offset for one in group.letters] for group in groups] == [[0, 1], [2, 3], [4], [9]]


@pytest.mark.parametrize("changed", [{}, {0: b"other"}, {2: b"\xff"}, {2: b"many"}, {7: b"x-y"}])
def test_headers_that_are_not_those_of_s3sink_are_no_context(changed: dict[int, bytes]) -> None:
    values = [b"orders", b"0", b"17", b"default/sink", b"Decode", b"NotJson", b"why", b"000000000001-ab", b"2"]
    headers = [{"key": name, "value": value} for name, value in zip(CONTEXT, values, strict=True)]
    for number, value in changed.items():
        headers[number] = {"key": "else" if number == 0 else headers[number]["key"], "value": value}
    found = context_of([{"key": "own", "value": None}, *headers])
    if changed:
        assert found is None
    else:
        assert found == ("default/sink", "000000000001-ab", PartitionGeneration("orders", 2, 0), 17, "NotJson")
