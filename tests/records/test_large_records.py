"""Records that take more memory to look into than there is: others are looked into, and none ends the process."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from s3sink_job import duck
from s3sink_job.records.fields import json_fields
from tests.records.batches import batch_of, decoded, encoding

TOO_LARGE = b'{"k":"large","a":[' + b"1," * 1_000_000 + b"1]}"
SMALL = b'{"k":"small"}'
NOT_JSON = b'{"k":}'


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    duck.database().execute("SET memory_limit = '24MB'")
    yield
    duck.database().execute(f"SET memory_limit = '{duck.MEMORY}'")


def fields(*values: bytes | None, **how: Any) -> tuple[list[str | None], dict[int, str]]:
    (found,) = json_fields(pa.array(values, pa.binary()), {("k",): True}, "value", **how).values()
    return found.rows().to_pylist(), found.bad


def test_many_records_that_are_too_much_at_once_are_looked_into_in_parts() -> None:
    dense = b'{"k":"%d","a":[' + b"1," * 20_000 + b"1]}"

    found, bad = fields(*(dense % n for n in range(100)), None)

    assert (found, bad) == ([*map(str, range(100)), None], {})


def test_one_that_is_too_large_alone_is_told_of_and_its_neighbours_have_their_folders() -> None:
    found, bad = fields(SMALL, TOO_LARGE, None, SMALL, NOT_JSON)

    assert found == ["small", None, None, "small", None]
    assert set(bad) == {1, 4}
    assert bad[1].startswith("value is too large to look into")
    assert bad[4].startswith("value is not JSON")


def test_a_field_that_may_be_there_twice_is_no_way_around_it() -> None:
    twice = b'{"k":1,"k":2}'
    escaped = b'{"\\u006b":"' + b"x" * 100 + b'"}'

    found, bad = fields(twice, TOO_LARGE, escaped)

    assert found[2] == "x" * 100
    assert "twice" in bad[0]
    assert "too large" in bad[1]


def test_it_is_still_json_whatever_its_neighbours_are() -> None:
    lines, bad = decoded(batch_of(SMALL, TOO_LARGE, NOT_JSON), encoding())

    assert set(bad) == {2}
    assert lines[:2] == [SMALL, TOO_LARGE]


def test_what_is_too_large_and_not_json_is_a_bad_record() -> None:
    _, bad = decoded(batch_of(SMALL, TOO_LARGE + b"]", SMALL), encoding())

    assert set(bad) == {1}


def test_one_that_may_have_a_field_of_ours_is_told_of() -> None:
    ours = TOO_LARGE.replace(b'"k"', b'"_key"')

    _, bad = decoded(batch_of(SMALL, ours, b'{"_key":1}', TOO_LARGE), encoding(meta="Kafka"))

    assert set(bad) == {1, 2}
    assert bad[1].startswith("value is too large to look into")
    assert "already has the field '_key'" in bad[2]


def test_bytes_are_base64_however_many_they_are() -> None:
    value = bytes(range(256)) * 60_000

    lines, bad = decoded(batch_of(b"\xff", None, value), encoding(value="Bytes"))

    assert bad == {}
    assert lines == [b'"/w=="', b"null", b'"%b"' % base64.b64encode(value)]
