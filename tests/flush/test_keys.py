"""Object names: no two objects ever share one, and readers can sort by them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.errors import FinalError
from s3sink_job.flush.keys import MAX_KEY_BYTES, object_key

topics = st.from_regex(r"[a-zA-Z0-9._-]{1,12}", fullmatch=True).filter(lambda name: name not in {".", ".."})
places = st.tuples(topics, st.integers(1, 30), st.integers(0, 99), st.integers(0, 2**63 - 1))


def test_the_name_is_the_one_the_documentation_shows() -> None:
    assert object_key("raw", "orders", 1, 3, 42, ".jsonl.gz") == "raw/orders/3/0000000000000000042.jsonl.gz"


def test_without_a_prefix_the_key_begins_with_the_topic() -> None:
    assert object_key("", "orders", 1, 0, 0, ".jsonl") == "orders/0/0000000000000000000.jsonl"


def test_a_topic_made_anew_shows_in_the_name() -> None:
    assert object_key("", "orders", 2, 0, 5, ".jsonl") == "orders/0/0000000000000000005-g2.jsonl"


def test_a_driver_that_cannot_be_fenced_marks_its_names() -> None:
    key = object_key("", "orders", 2, 0, 5, ".jsonl", "000000000007-abc")

    assert key == "orders/0/0000000000000000005-g2-000000000007-abc.jsonl"


@given(places, places)
def test_two_places_never_share_a_name(one: tuple[str, int, int, int], other: tuple[str, int, int, int]) -> None:
    assert (object_key("raw", *one, ".jsonl") == object_key("raw", *other, ".jsonl")) == (one == other)


@given(places, st.sampled_from(["topic", "generation", "partition", "first"]), st.data())
def test_two_places_that_differ_in_one_thing_never_share_a_name(
    place: tuple[str, int, int, int], part: str, data: st.DataObject
) -> None:
    """Unlike two random places, these are next to each other."""
    topic, generation, partition, first = place
    step = data.draw(st.integers(1, 11))
    near = {
        "topic": (topic + "-g2"[: step % 4 or 1], generation, partition, first),
        "generation": (topic, generation + step, partition, first),
        "partition": (topic, generation, partition + step, first),
        "first": (topic, generation, partition, first + step if first < 2**62 else first - step),
    }[part]

    assert object_key("", *place, ".txt") != object_key("", *near, ".txt")


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_names_sort_as_offsets_do(one: int, other: int) -> None:
    names = [object_key("", "orders", 1, 0, first, ".jsonl") for first in (one, other)]

    assert (names[0] < names[1]) == (one < other)


def test_the_longest_key_that_s3_takes_is_taken() -> None:
    tail = len(object_key("", "t", 1, 0, 0, ".jsonl")) + 1

    assert len(object_key("p" * (MAX_KEY_BYTES - tail), "t", 1, 0, 0, ".jsonl")) == MAX_KEY_BYTES


@pytest.mark.parametrize("prefix", ["p" * 1000, "ä" * 500])
def test_a_key_that_s3_would_refuse_is_an_error_that_names_the_field(prefix: str) -> None:
    with pytest.raises(FinalError, match=r"spec\.destination\.prefix") as refused:
        object_key(prefix, "orders", 1, 0, 0, ".jsonl")

    assert refused.value.reason == "KeyTooLong"
