"""The simulated store is bad enough: leaving out a precaution against it breaks a promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from s3sink_job.base.errors import TransientError
from s3sink_job.commit import multipart_publisher
from s3sink_job.stores import probe
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.protocol import Marker, Page
from tests.protocol.mutations import Patch, assert_needed
from tests.protocol.simulation import Setting
from tests.protocol.world import Fate


def ends_lists_where_a_page_fails(patch: Patch) -> None:
    whole = Bucket._pages

    def pages(self: Bucket, *arguments: Any, **wanted: Any) -> Iterator[Any]:
        try:
            yield from whole(self, *arguments, **wanted)
        except TransientError:
            return

    patch.setattr(Bucket, "_pages", pages)


def takes_the_first_page_for_all(patch: Patch) -> None:
    def pages(self: Bucket, below: str, list_page: Callable[[Marker], Page[Any]]) -> Iterator[Any]:
        yield from self._run(lambda: list_page(())).items

    patch.setattr(Bucket, "_pages", pages)


def stops_at_a_part_with_another_etag(patch: Patch) -> None:
    class Never(Exception):
        pass

    patch.setattr(multipart_publisher, "InvalidPart", Never)


def does_not_ask_for_metadata(patch: Patch) -> None:
    patch.setattr(probe, "_completed_twice", lambda bucket, key: None)
    patch.setattr(probe, "_metadata_of_put", lambda bucket, key: None)


def goes_by_metadata_alone(patch: Patch) -> None:
    patch.setattr(multipart_publisher, "names_a_flush", lambda key: False)


WORSE = Setting(conditional=False)
GC = Setting(often=("gc",), faults=25)
LATE = Setting(often=("late",), faults=15, writes=Fate.LATE)
# Runs until found when this was written, in the order below: 38, 8, 54, 25 and 1.


@pytest.mark.parametrize(
    ("leave_out", "setting", "promise"),
    [
        (ends_lists_where_a_page_fails, GC, "gc would abort"),
        (takes_the_first_page_for_all, GC, "gc would abort|went unnoticed"),
        (stops_at_a_part_with_another_etag, LATE, "never gets level.*InvalidPart"),
        (does_not_ask_for_metadata, WORSE, "never gets level.*exists already and was not written"),
        (goes_by_metadata_alone, WORSE, "never gets level.*exists already and was not written"),
    ],
)
def test_every_precaution_against_a_bad_store_is_needed(
    leave_out: Callable[[Patch], None], setting: Setting, promise: str, monkeypatch: Patch
) -> None:
    assert_needed(leave_out, setting, promise, monkeypatch)
