"""Simulated Kafka, readers and people are bad enough: leaving out a precaution against them breaks a promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from s3sink_job.commit import ledger
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver import takeover
from s3sink_job.flush import topic_changes, transitions, truncation
from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.manifest import Manifest, ObjectEntry
from s3sink_job.flush.state import SinkState, TruncatedLog
from s3sink_job.flush.transitions import published
from s3sink_job.flush.truncation import OffsetValidation
from s3sink_job.kafka.leaders import Leaders
from s3sink_job.kafka.topics import Topics
from s3sink_job.task import committable
from tests.protocol.mutations import Patch, assert_needed
from tests.protocol.simulation import Setting


def looks_at_ends_alone(patch: Patch) -> None:
    """Notices a truncated log only while it ends below the committed offset."""
    patch.setattr(Leaders, "validate", lambda *_: OffsetValidation())


def does_not_ask_for_the_leader_before_the_commit(patch: Patch) -> None:
    patch.setattr(committable, "truncated_meanwhile", lambda *_: frozenset())


def goes_on_at_the_end_of_a_cut_log(patch: Patch) -> None:
    whole = truncation._truncated_log

    def truncated_log(state: SinkState, at: TopicPartition, offsets: Offsets, *others: Any) -> TruncatedLog | None:
        found = whole(state, at, offsets, *others)
        return found and TruncatedLog(offsets.end, found.found_at)

    patch.setattr(truncation, "_truncated_log", truncated_log)


def takes_no_id_for_an_id(patch: Patch) -> None:
    for module in (topic_changes, transitions, truncation, committable):
        patch.setattr(module, "same_topic", lambda one, other: one == other)


def notes_with_the_next_flush(patch: Patch) -> None:
    """As in 0.1.0: that a flush is published is stored only together with the next change."""

    class Lazy(Committer):
        def publish(self, manifest: Manifest) -> list[ObjectEntry]:
            lost = self.publisher.publish(self.ledger.bucket, manifest, exclusive=self.ledger.conditional)
            places = [number for number, entry in enumerate(manifest.objects) if entry in lost]
            self._state = published(self.state, places)
            return lost

    patch.setattr(takeover, "Committer", Lazy)


def believes_any_state(patch: Patch) -> None:
    patch.setattr(Ledger, "refuse_rolled_back", lambda *_: None)


def gives_up_what_it_does_not_see(patch: Patch) -> None:
    patch.setattr(Topics, "given_up", lambda *_: True)


def forgets_the_rest_of_what_was_lost(patch: Patch) -> None:
    def without(lost: Mapping[str, tuple[int, ...]], mended: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
        return {flush: places for flush, places in lost.items() if flush not in mended}

    patch.setattr(transitions, "_still_lost", without)


def lets_anybody_take_over(patch: Patch) -> None:
    patch.setattr(ledger, "check_resource", lambda *_: None)


CUT = Setting(often=("cut",))
LOST = Setting(often=("life_cycle", "hide"))
# Runs until found when this was written, in the order below: 1, 36, 6, 7, 5, 1, 16, 99 and 1.


@pytest.mark.parametrize(
    ("leave_out", "setting", "promise"),
    [
        (looks_at_ends_alone, CUT, "in no object|and in"),
        (does_not_ask_for_the_leader_before_the_commit, CUT, "in no object|nobody counted"),
        (goes_on_at_the_end_of_a_cut_log, CUT, "in no object"),
        (takes_no_id_for_an_id, Setting(often=("remake",)), "without a cause|died of ProtocolError"),
        (notes_with_the_next_flush, Setting(often=("read_and_remove",)), "and in|noted as lost, yet"),
        (believes_any_state, Setting(often=("roll_back",)), "went unnoticed|and in|was overwritten|never committed"),
        (gives_up_what_it_does_not_see, LOST, "Kafka has it"),
        (forgets_the_rest_of_what_was_lost, Setting(often=("life_cycle", "append")), "in no object|nobody counted"),
        (lets_anybody_take_over, Setting(often=("zombie", "reset")), "older resource took over"),
    ],
)
def test_what_is_done_about_a_bad_world_is_needed(
    leave_out: Callable[[Patch], None], setting: Setting, promise: str, monkeypatch: Patch
) -> None:
    assert_needed(leave_out, setting, promise, monkeypatch)
