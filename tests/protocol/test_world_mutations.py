"""Kafka, readers and people of the simulation are bad enough: what the sink does about them, left out, is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from s3sink_job.engine import driver, writing
from s3sink_job.engine.books import Books
from s3sink_job.engine.leaders import Leaders
from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.publish import publish
from s3sink_job.engine.topics import Topics
from s3sink_job.flush import contact, state, truncation
from s3sink_job.flush.manifest import Manifest, ObjectEntry
from s3sink_job.flush.plan import Offsets, TopicPartition
from s3sink_job.flush.state import Cut, State, published
from s3sink_job.flush.truncation import Validated
from tests.protocol.simulation import Setting
from tests.protocol.test_mutations import found_out

Patch = pytest.MonkeyPatch


def looks_at_ends_alone(patch: Patch) -> None:
    """A log that was cut is noticed only while it ends below the committed offset."""
    patch.setattr(Leaders, "validate", lambda *_: Validated())


def does_not_ask_for_the_leader_before_the_commit(patch: Patch) -> None:
    patch.setattr(writing, "cut_meanwhile", lambda *_: frozenset())


def goes_on_at_the_end_of_a_cut_log(patch: Patch) -> None:
    whole = truncation._cut_of

    def cut_of(state: State, at: TopicPartition, offsets: Offsets, *others: Any) -> Cut | None:
        found = whole(state, at, offsets, *others)
        return found and Cut(offsets.end, found.seen)

    patch.setattr(truncation, "_cut_of", cut_of)


def takes_no_id_for_an_id(patch: Patch) -> None:
    for module in (contact, state, truncation, writing):
        patch.setattr(module, "same_topic", lambda one, other: one == other)


def notes_with_the_next_flush(patch: Patch) -> None:
    """As it was: what is published is stored as such only when something else is to be stored."""

    class Lazy(Books):
        def publish(self, manifest: Manifest) -> list[ObjectEntry]:
            lost = publish(self.ledger.bucket, manifest, exclusive=self.ledger.conditional)
            places = [number for number, entry in enumerate(manifest.objects) if entry in lost]
            self._state = published(self.state, places)
            return lost

    patch.setattr(driver, "Books", Lazy)


def believes_any_state(patch: Patch) -> None:
    patch.setattr(Ledger, "refuse_rolled_back", lambda *_: None)


def gives_up_what_it_does_not_see(patch: Patch) -> None:
    patch.setattr(Topics, "given_up", lambda *_: True)


def forgets_the_rest_of_what_was_lost(patch: Patch) -> None:
    def without(lost: Mapping[str, tuple[int, ...]], mended: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
        return {flush: places for flush, places in lost.items() if flush not in mended}

    patch.setattr(state, "_without", without)


def lets_anybody_take_over(patch: Patch) -> None:
    patch.setattr(Ledger, "_check_resource", lambda *_: None)


CUT = Setting(often=("cut",))
LOST = Setting(often=("life_cycle", "hide"))
MOST_RUNS = 400
"""It took 1, 36, 6, 7, 5, 1, 16, 99 and 1 when this was written, in the order below."""


@pytest.mark.parametrize(
    ("leave_out", "setting", "promise"),
    [
        (looks_at_ends_alone, CUT, "in no object|and in"),
        (does_not_ask_for_the_leader_before_the_commit, CUT, "in no object"),
        (goes_on_at_the_end_of_a_cut_log, CUT, "in no object"),
        (takes_no_id_for_an_id, Setting(often=("remake",)), "without a cause|died of ProtocolError"),
        (notes_with_the_next_flush, Setting(often=("read_and_remove",)), "and in|noted as lost, yet"),
        (believes_any_state, Setting(often=("roll_back",)), "went unnoticed|and in|was overwritten|never committed"),
        (gives_up_what_it_does_not_see, LOST, "Kafka has it"),
        (forgets_the_rest_of_what_was_lost, Setting(often=("life_cycle", "append")), "in no object"),
        (lets_anybody_take_over, Setting(often=("zombie", "reset")), "older resource took over"),
    ],
)
def test_what_is_done_about_a_bad_world_is_needed(
    leave_out: Callable[[Patch], None], setting: Setting, promise: str, monkeypatch: Patch
) -> None:
    leave_out(monkeypatch)

    runs, broken = found_out(setting)

    assert re.search(promise, broken)
    assert runs <= MOST_RUNS
