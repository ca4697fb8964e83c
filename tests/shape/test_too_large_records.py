"""Records that need more memory to be parsed than the limit: they are bad, and others are parsed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from s3sink_job.columns import duckdb_functions
from s3sink_job.decode.json_fields import json_fields
from tests.decode.batches import batch_of, decoded
from tests.encodings import encoding

TOO_LARGE = b'{"k":"large","a":[' + b"1," * 1_000_000 + b"1]}"
SMALL = b'{"k":"small"}'
NOT_JSON = b'{"k":}'


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    duckdb_functions.database().execute("SET memory_limit = '24MB'")
    yield
    duckdb_functions.database().execute(f"SET memory_limit = '{duckdb_functions.MEMORY}'")


def fields(*values: bytes | None, **how: Any) -> tuple[list[str | None], dict[int, str]]:
    (found,) = json_fields(pa.array(values, pa.binary()), {("k",): True}, "value", **how).values()
    return found.rows().to_pylist(), {row: fault.message for row, fault in found.faults.items()}


def test_a_batch_that_is_too_large_is_parsed_in_parts() -> None:
    dense = b'{"k":"%d","a":[' + b"1," * 20_000 + b"1]}"

    found, bad = fields(*(dense % n for n in range(100)), None)

    assert (found, bad) == ([*map(str, range(100)), None], {})


def test_a_record_that_is_too_large_is_bad_and_others_have_their_folders() -> None:
    found, bad = fields(SMALL, TOO_LARGE, None, SMALL, NOT_JSON)

    assert found == ["small", None, None, "small", None]
    assert set(bad) == {1, 4}
    assert bad[1].startswith("value is too large to parse")
    assert bad[4].startswith("value is not JSON")


def test_a_field_twice_is_found_beside_a_record_that_is_too_large() -> None:
    twice = b'{"k":1,"k":2}'
    escaped = b'{"\\u006b":"' + b"x" * 100 + b'"}'

    found, bad = fields(twice, TOO_LARGE, escaped)

    assert found[2] == "x" * 100
    assert "twice" in bad[0]
    assert "too large" in bad[1]


def test_a_large_record_is_still_json_beside_bad_records() -> None:
    lines, bad = decoded(batch_of(SMALL, TOO_LARGE, NOT_JSON), encoding())

    assert set(bad) == {2}
    assert lines[:2] == [SMALL, TOO_LARGE]


def test_a_large_record_that_is_not_json_is_a_bad_record() -> None:
    _, bad = decoded(batch_of(SMALL, TOO_LARGE + b"]", SMALL), encoding())

    assert set(bad) == {1}


def test_a_large_record_that_may_have_a_meta_field_is_a_bad_record() -> None:
    ours = TOO_LARGE.replace(b'"k"', b'"_key"')

    _, bad = decoded(batch_of(SMALL, ours, b'{"_key":1}', TOO_LARGE), encoding(meta="Kafka"))

    assert set(bad) == {1, 2}
    assert bad[1].startswith("value is too large to parse")
    assert "already has the field '_key'" in bad[2]


def test_any_number_of_bytes_is_written_as_base64() -> None:
    value = bytes(range(256)) * 60_000

    lines, bad = decoded(batch_of(b"\xff", None, value), encoding(value="Bytes"))

    assert bad == {}
    assert lines == [b'"/w=="', b"null", b'"%b"' % base64.b64encode(value)]
