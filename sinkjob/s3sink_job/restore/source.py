"""What a sink has committed and published, as a restore sees it when it begins, and again when it resumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import Manifest
from s3sink_job.flush.refresh import last_replaced, last_replaced_replay, visible_state
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import FlushHistory, read_history
from s3sink_job.proof.replays import with_replays
from s3sink_job.restore.progress import RestoreProgress

ALL_OBJECTS = -1


@dataclass(frozen=True)
class Source:
    history: FlushHistory
    flush: str | None
    """The last manifest of the sink."""
    replayed: str | None
    """The last manifest of its replays."""
    after: str | None
    replayed_after: str | None
    """The manifests before: a full refresh has replaced what they list."""
    left_out: Mapping[str, list[int]]
    """By manifest: the numbers of objects that are not published, or -1 for all of its objects."""
    logs: Mapping[tuple[str, int], str]
    """By topic and generation: the id of the topic that was read; empty if it is not known."""

    @property
    def unpublished(self) -> list[str]:
        """In words."""
        return [
            f"flush {name}: {'its' if ALL_OBJECTS in numbers else f'{len(numbers):,}'} objects are committed and not "
            "published yet. Run the sink, which publishes them first, or do without them"
            for name, numbers in self.left_out.items()
        ]


def read_source(ledger: Ledger, stored: SinkState, progress: RestoreProgress | None) -> Source:
    """Of what a former try began with, if there was one: positions count its rows."""
    replays, state = ledger.replays(), visible_state(stored)
    replayed = replays.load()
    if progress is not None:
        flush, after, left_out = progress.flush, progress.after, progress.left_out
        replay, replay_after = progress.replayed, progress.replayed_after
    else:
        flush, after = state.last, last_replaced(state)
        replay, replay_after = replayed.last if replayed is not None else None, last_replaced_replay(state)
        left_out = {name: numbers for one in (state, replayed) if one for name, numbers in _unpublished(one)}
    manifests = list(_without(ledger.chain(flush, after), left_out))
    more = _without(replays.chain(replay, replay_after), left_out)
    history = with_replays(read_history(manifests), read_history(more))
    logs = {
        (part.topic, part.generation): manifest.logs[part.topic].id if part.topic in manifest.logs else ""
        for manifest in manifests
        for part in manifest.slices
    }
    return Source(history, flush, replay, after, replay_after, left_out, logs)


def _unpublished(state: SinkState) -> Iterator[tuple[str, list[int]]]:
    if state.publishing is not None:
        yield state.publishing, [ALL_OBJECTS]
    for name, numbers in state.lost.items():
        if name != state.publishing:
            yield name, list(numbers)


def _without(manifests: Iterable[Manifest], left_out: Mapping[str, list[int]]) -> Iterator[Manifest]:
    for manifest in manifests:
        gone = left_out.get(manifest.name, [])
        kept = [entry for n, entry in enumerate(manifest.objects) if n not in gone and ALL_OBJECTS not in gone]
        yield replace(manifest, objects=tuple(kept)) if gone else manifest
