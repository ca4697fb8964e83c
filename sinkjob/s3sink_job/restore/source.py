"""What a sink has committed and published, as a restore sees it when it begins, and again when it resumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import Manifest
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
    left_out: Mapping[str, list[int]]
    """By manifest: the numbers of objects that are not published, or -1 for all of its objects."""

    @property
    def unpublished(self) -> list[str]:
        """In words."""
        return [
            f"flush {name}: {'its' if ALL_OBJECTS in numbers else f'{len(numbers):,}'} objects are committed and not "
            "published yet. Run the sink, which publishes them first, or do without them"
            for name, numbers in self.left_out.items()
        ]


def read_source(ledger: Ledger, state: SinkState, progress: RestoreProgress | None) -> Source:
    """Of what a former try began with, if there was one: positions count its rows."""
    replays = ledger.replays()
    replayed = replays.load()
    if progress is not None:
        flush, replay, left_out = progress.flush, progress.replayed, progress.left_out
    else:
        flush, replay = state.last, replayed.last if replayed is not None else None
        left_out = {name: numbers for one in (state, replayed) if one for name, numbers in _unpublished(one)}
    manifests = _without(ledger.history(replace(state, last=flush)), left_out)
    more = _without(replays.history(replace(replayed, last=replay)), left_out) if replayed is not None else ()
    return Source(with_replays(read_history(manifests), read_history(more)), flush, replay, left_out)


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
