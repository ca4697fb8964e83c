"""The cache of parsed schemas: bounded by text, and the one in use always fits."""

from __future__ import annotations

import pytest

from s3sink_job.decode.text_cache import TextCache


def test_what_was_not_used_for_the_longest_time_goes_first() -> None:
    made: list[str] = []
    cache = TextCache(lambda text: made.append(text) or text.upper(), len, 6)
    assert [cache.of(text) for text in ("aaa", "bbb", "aaa", "ccc", "aaa")] == ["AAA", "BBB", "AAA", "CCC", "AAA"]
    assert made == ["aaa", "bbb", "ccc"]
    cache.of("bbb")
    assert made == ["aaa", "bbb", "ccc", "bbb"]


def test_a_schema_larger_than_the_cache_is_kept_alone() -> None:
    made: list[str] = []
    cache = TextCache(lambda text: made.append(text) or text, len, 3)
    for text in ("a", "large", "large", "a"):
        cache.of(text)
    assert made == ["a", "large", "a"]


def test_what_cannot_be_made_takes_no_room() -> None:
    def make(text: str) -> str:
        if text == "bad":
            raise ValueError(text)
        return text

    cache = TextCache(make, len, 3)
    cache.of("abc")
    for _ in range(3):
        with pytest.raises(ValueError, match="bad"):
            cache.of("bad")
    assert cache.of("abc") == "abc"
    assert cache._size == 3
