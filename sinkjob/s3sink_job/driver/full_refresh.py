"""Carries a run of `mode: FullRefresh` from its last flush to its end: publish, make current, remove, done.

Each step is small and starts from the state, so that any driver can go on with it after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from s3sink_api.spec import S3Sink
from s3sink_job.base.errors import FinalError, ProtocolError
from s3sink_job.base.times import iso
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.current_pointer import CurrentPointer
from s3sink_job.commit.former_objects import FormerObjects
from s3sink_job.commit.ownership import is_visible
from s3sink_job.driver.flusher import Flusher
from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.refresh import (
    abandon_run,
    describe_totals,
    finish_run,
    incomplete,
    is_done,
    is_publishing_run,
    is_removing,
    make_current,
    must_abandon,
    must_begin,
    publish_run,
    replaced_totals,
    written_totals,
)
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.transitions import is_writing_run
from s3sink_job.report import logs
from s3sink_job.report.status import Reporter
from s3sink_job.task.routing import Routing

DELETE_CHECK = "_s3sink-delete-check"
"""A key that no object has: deleting it shows whether the sink may delete."""


class FullRefresh:
    def __init__(
        self, sink: S3Sink, run: str | None, flusher: Flusher, reporter: Reporter, clock: Callable[[], float]
    ) -> None:
        """`run` is None in `mode: Append`. Such a driver also finishes what a run left unfinished."""
        self._sink, self._run, self._flusher = sink, run, flusher
        self._reporter, self._clock = reporter, clock
        self._unpublished: list[str] | None = None
        """Flushes of the run that are left to publish, the next one first; None if not known."""
        self._replays_removed = False

    @property
    def appends(self) -> bool:
        return self._run is None

    def taken_over(self, committer: Committer) -> None:
        """Another driver may have gone on meanwhile. Refuses a store on which two drivers could swap at once."""
        self._unpublished, self._replays_removed = None, False
        refresh, ledger = committer.state.refresh, committer.ledger
        if not ledger.conditional and (self._run is not None or (refresh is not None and refresh.unfinished)):
            raise FinalError(
                "mode: FullRefresh needs a store with conditional writes: without them two drivers may both replace "
                "objects, and the former ones could be removed while they are needed. Use another store, or Append",
                reason="NoConditionalWrites",
            )

    def is_over(self, state: SinkState) -> bool:
        """Whether the run of this driver is complete."""
        return self._run is not None and is_done(state, self._run)

    def is_writing(self, state: SinkState) -> bool:
        return is_writing_run(state)

    def progress(self, state: SinkState) -> str:
        """Of a run that writes; empty if there is none."""
        if not is_writing_run(state):
            return ""
        return f"full refresh: {written_totals(state).records:,} records are written, and not visible yet"

    def check_before_it_begins(self, committer: Committer, routing: Routing) -> None:
        """Raises if a run that begins now could not replace anything at its end. It would find out after hours."""
        if self._run is None or not must_begin(committer.state, self._run):
            return
        self._pointer(committer).check()
        for place in routing.destinations:
            bucket = committer.ledger.bucket.named(place.bucket)
            try:
                bucket.delete(f"{place.prefix}/{DELETE_CHECK}" if place.prefix else DELETE_CHECK)
            except FinalError as error:
                text = f"a full refresh removes what it replaces, but the store does not let it delete: {error}"
                raise FinalError(text, reason=error.reason) from error

    def abandon_other(self, committer: Committer) -> None:
        """A run that was broken off while it was writing, and that is not the one of this driver."""
        state = committer.state
        if not must_abandon(state, self._run) or state.refresh is None:
            return
        self._refuse_visible(committer)
        refresh, left = state.refresh, written_totals(state)
        logs.warning(
            "an unfinished full refresh is abandoned; nothing of it was visible, and nothing was replaced",
            run=refresh.run,
            began=iso(refresh.began),
            objects=left.objects,
            todo="`s3sink gc` or a lifecycle rule removes its uploads",
        )
        committer.swap(abandon_run(state))

    def _refuse_visible(self, committer: Committer) -> None:
        """If objects of the run are visible, it was further than the state says: an old copy of it was restored."""
        ledger, state = committer.ledger, committer.state
        assert state.refresh is not None
        first = None
        for manifest in ledger.chain(state.last, state.refresh.since):
            first = manifest if any(entry.upload_id for entry in manifest.objects) else first
        if first is not None and is_visible(ledger, first):
            raise ProtocolError(
                f"state rolled back: {ledger.state_object.url} says that run {state.refresh.run} is writing, but "
                f"objects of its flush {first.name} are visible. Restore the newest version of the state object",
                reason="StateRolledBack",
            )

    def _pointer(self, committer: Committer) -> CurrentPointer:
        return CurrentPointer(committer.ledger, self._sink.id, self._sink.spec.destination.prefix)

    def advance(self, committer: Committer) -> bool:
        """One small step after everything is written. False if there is nothing to do but to read and write."""
        state = committer.state
        if is_publishing_run(state):
            self._publish_next(committer)
            return True
        if is_removing(state):
            self._remove_some(committer)
            return True
        return False

    def end_writing(self, committer: Committer, known: Mapping[TopicPartition, Offsets]) -> None:
        """Everything is drained. Raises if the run must not replace anything. `known`: what Kafka has now."""
        state = committer.state
        if why := incomplete(state, known):
            raise FinalError(
                f"the full refresh did not write everything up to its end: {why}. Nothing was replaced. Start another "
                "run",
                reason="RefreshIncomplete",
            )
        former, written = replaced_totals(state), written_totals(state)
        if former.records and not written.records and not self._sink.spec.allow_empty:
            raise FinalError(
                f"the full refresh wrote no record, and would replace {describe_totals(former)}. Nothing was replaced. "
                "Set spec.allowEmpty to true if that is what you want",
                reason="RefreshEmpty",
            )
        logs.warning(
            "full refresh: everything is written. It is published now, and then replaces what the sink wrote before",
            run=self._run,
            written=describe_totals(written),
            replaces=describe_totals(former),
        )
        committer.swap(publish_run(state))

    def _publish_next(self, committer: Committer) -> None:
        state = committer.state
        assert state.refresh is not None
        if must_repair(state):
            return
        if self._unpublished is None:
            # Repairs are published by themselves, right after their commit.
            left = [m.name for m in committer.ledger.chain(state.last, state.refresh.cursor) if not m.mends]
            self._unpublished = left[::-1]
        if self._unpublished:
            count = len(self._unpublished)
            self._reporter.phase("Running", f"full refresh: {count} flushes are left to publish")
            self._flusher.publish_of_run(committer, committer.ledger.manifest(self._unpublished[0]))
            del self._unpublished[0]
            return
        replays = committer.ledger.replays().load()
        committer.swap(make_current(state, self._clock(), replays.last if replays else None))
        logs.info("full refresh: the new objects are the current ones", run=state.refresh.run)

    def _remove_some(self, committer: Committer) -> None:
        self._reporter.phase("Running", "full refresh: the former objects are being removed")
        former = FormerObjects(committer, self._sink.id, self._reporter.removed)
        if not self._replays_removed:
            self._pointer(committer).write(committer.state)
            former.remove_replays()
            self._replays_removed = True
        if former.remove_some():
            return
        refresh = committer.swap(finish_run(committer.state)).refresh
        assert refresh is not None
        self._unpublished, self._replays_removed = None, False
        if refresh.unremoved:
            logs.warning("full refresh: some replaced objects could not be removed", objects=refresh.unremoved)
        logs.info("full refresh: done", run=refresh.run, unremoved=refresh.unremoved)


def must_repair(state: SinkState) -> bool:
    """Lost objects are written again before anything else, so that the run is whole when it becomes current."""
    return bool(state.lost)
