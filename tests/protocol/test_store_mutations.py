"""The simulation's store is bad enough: what the sink does about it, left out, is found in so many runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from s3sink_job.engine import publish
from s3sink_job.errors import TransientError
from s3sink_job.stores import probe
from s3sink_job.stores.bucket import Bucket
from tests.protocol.simulation import Setting
from tests.protocol.test_mutations import found_out
from tests.protocol.world import Fate

Patch = pytest.MonkeyPatch


def ends_lists_where_a_page_fails(patch: Patch) -> None:
    whole = Bucket._pages

    def pages(self: Bucket, *arguments: Any, **wanted: Any) -> Iterator[Any]:
        try:
            yield from whole(self, *arguments, **wanted)
        except TransientError:
            return

    patch.setattr(Bucket, "_pages", pages)


def takes_the_first_page_for_all(patch: Patch) -> None:
    whole = Bucket._pages

    def pages(self: Bucket, *arguments: Any, **wanted: Any) -> Iterator[Any]:
        yield next(whole(self, *arguments, **wanted))

    patch.setattr(Bucket, "_pages", pages)


def stops_at_a_part_with_another_etag(patch: Patch) -> None:
    class Never(Exception):
        pass

    patch.setattr(publish, "InvalidPart", Never)


def does_not_ask_for_metadata(patch: Patch) -> None:
    patch.setattr(probe, "_completed_twice", lambda bucket, key: None)
    patch.setattr(probe, "_metadata_of_put", lambda bucket, key: None)


def goes_by_metadata_alone(patch: Patch) -> None:
    patch.setattr(publish, "names_a_flush", lambda key: False)


WORSE = Setting(conditional=False)
GC = Setting(often=("gc",), faults=25)
LATE = Setting(often=("late",), faults=15, writes=Fate.LATE)
MOST_RUNS = 400
"""It took 38, 8, 54, 25 and 1 when this was written, in the order below."""


@pytest.mark.parametrize(
    ("leave_out", "setting", "promise"),
    [
        (ends_lists_where_a_page_fails, GC, "gc would abort"),
        (takes_the_first_page_for_all, GC, "gc would abort"),
        (stops_at_a_part_with_another_etag, LATE, "never gets level.*InvalidPart"),
        (does_not_ask_for_metadata, WORSE, "never gets level.*is taken by an object"),
        (goes_by_metadata_alone, WORSE, "never gets level.*is taken by an object"),
    ],
)
def test_what_is_done_about_a_bad_store_is_needed(
    leave_out: Callable[[Patch], None], setting: Setting, promise: str, monkeypatch: Patch
) -> None:
    leave_out(monkeypatch)

    runs, broken = found_out(setting)

    assert re.search(promise, broken)
    assert runs <= MOST_RUNS
