"""The simulation finds broken drivers: each leaves out one rule of the protocol, and breaks a promise."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3sink_api.spec import Reset
from s3sink_job.base.errors import FencedError, TransientError
from s3sink_job.commit import ledger
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.ledger import Ledger
from s3sink_job.commit.multipart_publisher import MultipartPublisher
from s3sink_job.commit.state_object import StateObject
from s3sink_job.driver import driver, flusher, observer, takeover
from s3sink_job.flush import resets, topic_changes
from s3sink_job.flush.manifest import Manifest, ObjectEntry
from s3sink_job.flush.resets import pending_reset, reset_topics
from s3sink_job.flush.state import ResetDone, SinkState
from s3sink_job.flush.statefile import state_to_json
from s3sink_job.flush.transitions import commit, next_generation, published
from s3sink_job.stores.errors import PreconditionFailed
from s3sink_job.task.committable import BadRecordLimits, CommitCheck
from s3sink_job.task.slice_result import SliceResult
from tests.protocol.drivers import ModelDriver, ModelFlushJob, model_parts
from tests.protocol.letter_topic import ModelLetterTopic, ModelSession
from tests.protocol.mutations import broken_promise
from tests.protocol.simulation import Setting
from tests.protocol.stories import manifest_without_an_answer, remade_while_read, replaced_before_it_sends
from tests.protocol.world import Violation, World


class BelievesAnyReadBack(StateObject):
    """Considers any stored state its own."""

    def _read_back(self, target: SinkState) -> str | None:
        found = self.bucket.get(self.key)
        return None if found is None or found[1] == self._etag else found[1]


class ReusesNumbers(Ledger):
    """The manifest of a failed attempt has the same name as the next one."""

    def next_number(self, state: SinkState) -> int:
        return state.flush + 1


class SwapsWithoutCondition(StateObject):
    def _swap(self, target: SinkState) -> str:
        return self.bucket.put(self.key, state_to_json(target))


class TakesTimeOutsForFailures(StateObject):
    """Assumes that a swap without an answer failed."""

    def _swap(self, target: SinkState) -> str:
        try:
            return self.bucket.once.put(self.key, state_to_json(target), if_match=self._etag, if_absent=not self._etag)
        except PreconditionFailed:
            raise FencedError("412") from None
        except TransientError:
            if (found := self.bucket.get(self.key)) is not None:
                self._etag = found[1]
            raise


class GoesOnAfterDoubt(Committer):
    """Does not take over again when the outcome of a swap is unknown."""

    def swap(self, state: SinkState) -> SinkState:
        before = self._state
        try:
            return super().swap(state)
        except TransientError:
            self._state = before
            raise


class PublishesBeforeTheSwap(Committer):
    def commit(self, state: SinkState, manifest: Manifest) -> SinkState:
        self.ledger.put_manifest(manifest)
        MultipartPublisher().publish(self.ledger.bucket, manifest, exclusive=True)
        return self.swap(commit(state, manifest))


class SendsDeadLettersBeforeTheSwap(Committer):
    def commit(self, state: SinkState, manifest: Manifest) -> SinkState:
        self.ledger.put_manifest(manifest)
        self.letters.publish(self.ledger, manifest)
        return self.swap(commit(state, manifest))


class NotesBeforeItSendsDeadLetters(Committer):
    def publish(self, manifest: Manifest) -> list[ObjectEntry]:
        lost = self.publisher.publish(self.ledger.bucket, manifest, exclusive=True)
        self.swap(published(self.state, [manifest.objects.index(entry) for entry in lost]))
        return [*lost, *self.letters.publish(self.ledger, manifest)]


class ListsNoDeadLetters(Committer):
    """The manifest lists the objects of data alone."""

    def commit(self, state: SinkState, manifest: Manifest) -> SinkState:
        return super().commit(state, replace(manifest, objects=manifest.data))


class SwapsBeforeTheManifest(Committer):
    def commit(self, state: SinkState, manifest: Manifest) -> SinkState:
        state = self.swap(commit(state, manifest))
        self.ledger.put_manifest(manifest)
        return state


class NotesBeforeItPublishes(Committer):
    def publish(self, manifest: Manifest) -> list[ObjectEntry]:
        self.swap(published(self.state))
        return super().publish(manifest)


class LeavesPublishingToOthers(Committer):
    """Forgets what an earlier driver committed and did not publish."""

    def __init__(self, ledger: Ledger, state: SinkState, clock: Callable[[], float], **letters: Any) -> None:
        super().__init__(ledger, published(state), clock, **letters)


class GivesUpLostUploads(Committer):
    def publish(self, manifest: Manifest) -> list[ObjectEntry]:
        super().publish(manifest)
        if self.state.lost:
            self.swap(replace(self.state, lost={}))
        return []


class ReadsRemadeTopics(CommitCheck):
    """Does not check the topic's id again before the commit."""

    def committable(self, results: list[SliceResult], limits: BadRecordLimits) -> list[SliceResult]:
        return results


class SkipsFailedSlices(ModelFlushJob):
    """Treats a failed slice as one without records."""

    def write(self, *arguments: Any) -> list[SliceResult]:
        return [
            SliceResult(r.slice, r.slice.end, r.objects, r.skipped) if r.failure else r
            for r in super().write(*arguments)
        ]


class KeepsWhatDoesNotJoin(CommitCheck):
    """Commits a slice though an earlier one of its partition stopped early."""

    def committable(self, results: list[SliceResult], limits: BadRecordLimits) -> list[SliceResult]:
        return self.of_unchanged_logs(results)


class StepsOverHoles(Committer):
    """Does not check that slices begin at the committed offset."""

    def commit(self, state: SinkState, manifest: Manifest) -> SinkState:
        self.ledger.put_manifest(manifest)
        reached: dict[int, int] = {}
        joined = []
        for part in manifest.slices:
            start = reached.get(part.partition, state.offset(part.topic, part.partition))
            joined.append(replace(part, start=start))
            reached[part.partition] = part.end
        return self.swap(commit(state, replace(manifest, slices=tuple(joined))))


def one_generation(state: SinkState, topic: str, *arguments: Any) -> SinkState:
    """A recreated topic without a new generation."""
    made = next_generation(state, topic, *arguments)
    same = replace(made.topics[topic], generation=state.topics[topic].generation)
    return replace(made, topics={**made.topics, topic: same})


def without_a_new_generation(state: SinkState, *arguments: Any) -> SinkState:
    made = reset_topics(state, *arguments)
    same = {n: replace(t, generation=state.topics[n].generation) for n, t in made.topics.items() if n in state.topics}
    return replace(made, topics={**made.topics, **same})


def forgets_the_nonce(state: SinkState, *arguments: Any) -> SinkState:
    return replace(reset_topics(state, *arguments), resets=state.resets)


def looks_at_the_last_nonce_alone(wanted: Reset | None, state: SinkState) -> Reset | None:
    last = state.resets[-1].nonce if state.resets else None
    return None if wanted is None or wanted.nonce == last else wanted


def notes_any_nonce(state: SinkState, nonce: str, now: float) -> SinkState:
    return replace(state, resets=(*state.resets, ResetDone(nonce, now)))


BROKEN = [
    ((BelievesAnyReadBack,), Setting(), "never committed|the epoch went|the revision went|moved back"),
    ((SwapsWithoutCondition,), Setting(), "the revision went|the epoch went|moved back"),
    ((TakesTimeOutsForFailures, GoesOnAfterDoubt), Setting(), "moved back|the revision went|the epoch went|and in"),
    ((PublishesBeforeTheSwap,), Setting(), "never committed"),
    ((SendsDeadLettersBeforeTheSwap,), Setting(), "never committed, were sent"),
    ((NotesBeforeItSendsDeadLetters,), Setting(), "nobody counted"),
    ((ListsNoDeadLetters,), Setting(), "nobody counted|does not list"),
    ((SwapsBeforeTheManifest,), Setting(), "never gets level"),
    ((NotesBeforeItPublishes,), Setting(), "in no object"),
    ((LeavesPublishingToOthers,), Setting(), "in no object|never gets level"),
    ((GivesUpLostUploads,), Setting(often=("life_cycle",)), "in no object"),
    ((KeepsWhatDoesNotJoin, StepsOverHoles), Setting(), "in no object|nobody counted"),
    ((SkipsFailedSlices,), Setting(), "in no object|nobody counted"),
]


def put_in_place(broken: type, patch: pytest.MonkeyPatch) -> None:
    if issubclass(broken, ModelFlushJob):
        patch.setattr(ModelDriver, "new_flush_job", broken)
        return
    users = {StateObject: ledger, Ledger: takeover, Committer: takeover, CommitCheck: flusher}
    whole = next(kind for kind in users if issubclass(broken, kind))
    patch.setattr(users[whole], whole.__name__, broken)


@pytest.mark.parametrize(("parts", "setting", "promise"), BROKEN, ids=[case[0][0].__name__ for case in BROKEN])
def test_a_driver_that_breaks_a_rule_is_found_out(
    parts: tuple[type, ...], setting: Setting, promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in parts:
        put_in_place(part, monkeypatch)

    assert re.search(promise, broken_promise(setting))


def test_a_recreated_topic_without_a_new_generation_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (topic_changes, resets):
        monkeypatch.setattr(module, "next_generation", one_generation)

    assert re.search("moved back|was overwritten|never gets level|by a reset", broken_promise(Setting()))


RESETS = Setting(often=("reset",))


@pytest.mark.parametrize(
    ("broken", "promise"),
    [(without_a_new_generation, "by a reset"), (forgets_the_nonce, "without a cause|never carried out")],
)
def test_a_reset_that_is_not_stored_whole_is_found_out(
    broken: Callable[..., SinkState], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "reset_topics", broken)

    assert re.search(promise, broken_promise(RESETS))


def test_a_reset_that_comes_back_with_an_older_manifest_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "pending_reset", looks_at_the_last_nonce_alone)
    monkeypatch.setattr(resets, "record_reset", notes_any_nonce)

    assert re.search("carried out twice", broken_promise(RESETS))


def test_a_reset_before_everything_committed_is_published_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_in_haste(self: ModelDriver) -> Committer:
        committer = driver.Driver.open(self)
        if pending_reset(self.spec.reset, committer.state):
            committer._state = published(committer.state)
        return committer

    monkeypatch.setattr(ModelDriver, "open", open_in_haste)

    assert re.search("in no object|nobody counted", broken_promise(RESETS))


def test_a_driver_that_does_not_look_at_the_topics_id_again_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(ReadsRemadeTopics, monkeypatch)
    world = World()
    with model_parts(world), pytest.raises(Violation, match=r"and in|in no object"):
        remade_while_read(world)


def test_a_ledger_that_uses_a_flush_number_twice_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(ReusesNumbers, monkeypatch)
    world = World()
    with model_parts(world), pytest.raises(Violation, match=r"does not list|in no object"):
        manifest_without_an_answer(world)


class AnySession:
    """A session that does not know which flush was sent last."""

    def __init__(self, session: ModelSession) -> None:
        self.send, self.close = session.send, session.close

    def last_flush(self) -> str:
        return ""


def test_a_driver_that_does_not_ask_which_flush_was_sent_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = ModelLetterTopic.begin
    monkeypatch.setattr(ModelLetterTopic, "begin", lambda self: AnySession(begin(self)))

    assert re.search(r"dead letter .* is in", broken_promise(Setting()))


def test_a_driver_that_sends_dead_letters_though_it_was_replaced_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was paused before it began a session, and the next driver has published two flushes meanwhile."""
    monkeypatch.setattr(Ledger, "confirm", lambda self: None)
    world = World(bad_records="Topic")
    with model_parts(world), pytest.raises(Violation, match=r"dead letter .* is in"):
        replaced_before_it_sends(world)
