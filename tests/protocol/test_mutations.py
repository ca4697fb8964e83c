"""The simulation can fail: rules of the protocol left out one by one, and the promise that is broken then."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3sink_job.engine import driver
from s3sink_job.engine.books import Books
from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.publish import publish
from s3sink_job.engine.write import SliceResult
from s3sink_job.errors import FencedError, TransientError
from s3sink_job.flush import contact
from s3sink_job.flush.contact import begin_anew, due_reset
from s3sink_job.flush.manifest import Manifest, ObjectEntry
from s3sink_job.flush.state import ResetDone, State, commit, published, remake
from s3sink_job.flush.statefile import state_to_json
from s3sink_job.spec import Reset
from s3sink_job.stores.bucket import PreconditionFailed
from tests.protocol.choosing import Seeded
from tests.protocol.drivers import ModelDriver, ModelWriting, model_parts
from tests.protocol.simulation import Setting, simulate
from tests.protocol.stories import manifest_without_an_answer, remade_while_read
from tests.protocol.world import Violation, World

SEEDS = 600


class BelievesAnyReadBack(Ledger):
    """Takes whatever state is stored for its own."""

    def _read_back(self, target: State) -> str | None:
        found = self.bucket.get(self.state_key)
        return None if found is None or found[1] == self._etag else found[1]


class ReusesNumbers(Ledger):
    """A manifest of a failed attempt then has the name of the next one."""

    def next_number(self, state: State) -> int:
        return state.flush + 1


class SwapsWithoutCondition(Ledger):
    def _swap(self, target: State) -> str:
        return self.bucket.put(self.state_key, state_to_json(target))


class TakesTimeOutsForFailures(Ledger):
    """Believes that a swap without an answer did not happen."""

    def _swap(self, target: State) -> str:
        try:
            return self.bucket.put(
                self.state_key, state_to_json(target), if_match=self._etag, if_absent=not self._etag, retry=False
            )
        except PreconditionFailed:
            raise FencedError("412") from None
        except TransientError:
            if (found := self.bucket.get(self.state_key)) is not None:
                self._etag = found[1]
            raise


class GoesOnAfterDoubt(Books):
    """Does not have the ledger opened anew when nobody knows whether a swap happened."""

    def swap(self, state: State) -> State:
        before = self._state
        try:
            return super().swap(state)
        except TransientError:
            self._state = before
            raise


class PublishesBeforeTheSwap(Books):
    def commit(self, state: State, manifest: Manifest) -> State:
        self.ledger.put_manifest(manifest)
        publish(self.ledger.bucket, manifest, exclusive=True)
        return self.swap(commit(state, manifest))


class SwapsBeforeTheManifest(Books):
    def commit(self, state: State, manifest: Manifest) -> State:
        state = self.swap(commit(state, manifest))
        self.ledger.put_manifest(manifest)
        return state


class NotesBeforeItPublishes(Books):
    def publish(self, manifest: Manifest) -> list[ObjectEntry]:
        self.swap(published(self.state))
        return super().publish(manifest)


class LeavesPublishingToOthers(Books):
    """Forgets what the driver before it had committed and not published."""

    def __init__(self, ledger: Ledger, state: State, clock: Callable[[], float]) -> None:
        super().__init__(ledger, published(state), clock)


class GivesUpLostUploads(Books):
    def publish(self, manifest: Manifest) -> list[ObjectEntry]:
        super().publish(manifest)
        if self.state.lost:
            self.swap(replace(self.state, lost={}))
        return []


class ReadsRemadeTopics(ModelWriting):
    """Does not look at the topic's id again before the commit."""

    def keep_committable(self, results: list[SliceResult], *_: object) -> list[SliceResult]:
        return results


class SkipsFailedSlices(ModelWriting):
    """Takes a slice whose job failed for one without records."""

    def write(self, *arguments: Any) -> list[SliceResult]:
        return [
            SliceResult(r.slice, r.slice.end, r.objects, r.skipped) if r.failure else r
            for r in super().write(*arguments)
        ]


class KeepsWhatDoesNotJoin(ModelWriting):
    """Commits a slice though an earlier one of its partition stopped short."""

    def keep_committable(self, *arguments: Any) -> list[SliceResult]:
        return self.keep_current(*arguments)


class StepsOverHoles(Books):
    """Does not ask whether slices begin where the partition is."""

    def commit(self, state: State, manifest: Manifest) -> State:
        self.ledger.put_manifest(manifest)
        reached: dict[int, int] = {}
        joined = []
        for part in manifest.slices:
            start = reached.get(part.partition, state.offset(part.topic, part.partition))
            joined.append(replace(part, start=start))
            reached[part.partition] = part.end
        return self.swap(commit(state, replace(manifest, slices=tuple(joined))))


def one_generation(state: State, topic: str, *arguments: Any) -> State:
    """A topic made anew without new names."""
    made = remake(state, topic, *arguments)
    same = replace(made.topics[topic], generation=state.topics[topic].generation)
    return replace(made, topics={**made.topics, topic: same})


def without_a_new_generation(state: State, *arguments: Any) -> State:
    made = begin_anew(state, *arguments)
    same = {n: replace(t, generation=state.topics[n].generation) for n, t in made.topics.items() if n in state.topics}
    return replace(made, topics={**made.topics, **same})


def forgets_the_nonce(state: State, *arguments: Any) -> State:
    return replace(begin_anew(state, *arguments), resets=state.resets)


def looks_at_the_last_nonce_alone(wanted: Reset | None, state: State) -> Reset | None:
    last = state.resets[-1].nonce if state.resets else None
    return None if wanted is None or wanted.nonce == last else wanted


def notes_any_nonce(state: State, nonce: str, now: float) -> State:
    return replace(state, resets=(*state.resets, ResetDone(nonce, now)))


def broken_promise(setting: Setting) -> str:
    return found_out(setting)[1]


def found_out(setting: Setting) -> tuple[int, str]:
    """How many runs it took, and the promise that was broken."""
    for seed in range(SEEDS):
        try:
            simulate(Seeded(seed), setting)
        except Violation as found:
            return seed + 1, str(found).splitlines()[0]
    pytest.fail(f"no promise was broken in {SEEDS} runs")


BROKEN = [
    ((BelievesAnyReadBack,), Setting(), "never committed|the epoch went|the revision went|moved back"),
    ((SwapsWithoutCondition,), Setting(), "the revision went|the epoch went|moved back"),
    ((TakesTimeOutsForFailures, GoesOnAfterDoubt), Setting(), "moved back|the revision went|the epoch went|and in"),
    ((PublishesBeforeTheSwap,), Setting(), "never committed"),
    ((SwapsBeforeTheManifest,), Setting(), "never gets level"),
    ((NotesBeforeItPublishes,), Setting(), "in no object"),
    ((LeavesPublishingToOthers,), Setting(), "in no object|never gets level"),
    ((GivesUpLostUploads,), Setting(often=("life_cycle",)), "in no object"),
    ((KeepsWhatDoesNotJoin, StepsOverHoles), Setting(), "in no object|nobody counted"),
    ((SkipsFailedSlices,), Setting(), "in no object|nobody counted"),
]


def put_in_place(broken: type, patch: pytest.MonkeyPatch) -> None:
    if issubclass(broken, ModelWriting):
        patch.setattr(ModelDriver, "writing", broken)
    else:
        patch.setattr(driver, "Ledger" if issubclass(broken, Ledger) else "Books", broken)


@pytest.mark.parametrize(("parts", "setting", "promise"), BROKEN, ids=[case[0][0].__name__ for case in BROKEN])
def test_a_driver_that_breaks_a_rule_is_found_out(
    parts: tuple[type, ...], setting: Setting, promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in parts:
        put_in_place(part, monkeypatch)

    assert re.search(promise, broken_promise(setting))


def test_a_topic_made_anew_without_a_new_generation_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "remake", one_generation)

    assert re.search("moved back|was overwritten|never gets level|by a reset", broken_promise(Setting()))


RESETS = Setting(often=("reset",))


@pytest.mark.parametrize(
    ("broken", "promise"),
    [(without_a_new_generation, "by a reset"), (forgets_the_nonce, "without a cause|never carried out")],
)
def test_a_reset_that_is_not_stored_whole_is_found_out(
    broken: Callable[..., State], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "begin_anew", broken)

    assert re.search(promise, broken_promise(RESETS))


def test_a_reset_that_comes_back_with_an_older_manifest_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "due_reset", looks_at_the_last_nonce_alone)
    monkeypatch.setattr(contact, "reset_done", notes_any_nonce)

    assert re.search("carried out twice", broken_promise(RESETS))


def test_a_reset_before_everything_committed_is_published_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_in_haste(self: ModelDriver) -> Books:
        books = driver.Driver.open(self)
        if due_reset(self.spec.reset, books.state):
            books._state = published(books.state)
        return books

    monkeypatch.setattr(ModelDriver, "open", open_in_haste)

    assert re.search("in no object", broken_promise(RESETS))


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
