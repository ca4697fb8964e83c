"""Dead letters that `s3sink replay` wrote into objects: what its own state and manifests say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import Manifest
from s3sink_job.flush.refresh import last_replaced_replay
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import FlushHistory, PartitionHistory, read_history


def with_replays(history: FlushHistory, replays: FlushHistory) -> FlushHistory:
    """Everything that the sink and its replays ever committed. Replays are read first: they follow the sink."""
    partitions = dict(history.partitions)
    for place, known in replays.partitions.items():
        partitions[place] = replace(partitions.get(place, PartitionHistory()), replayed=known.replayed)
    return FlushHistory(partitions, history.flushes | replays.flushes)


def replay_history(ledger: Ledger, sink: SinkState, until: SinkState | None = None) -> FlushHistory:
    """`ledger` and `sink` are the sink's. Replayed dead letters that a full refresh replaced are left out.

    `until`: the state of the replays, if it was read before.
    """
    replays = ledger.replays()
    state = until or replays.load()
    if state is None:
        return read_history(())
    return read_history(_without_lost(state, replays.chain(state.last, last_replaced_replay(sink))))


def _without_lost(state: SinkState, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """An object whose upload was lost was never there: its dead letters can be replayed again."""
    for manifest in manifests:
        lost = state.lost.get(manifest.name, ())
        yield replace(manifest, objects=tuple(o for n, o in enumerate(manifest.objects) if n not in lost))
