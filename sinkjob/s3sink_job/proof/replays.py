"""Dead letters that `s3sink replay` wrote into objects: what its own state and manifests say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import Manifest
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import FlushHistory, PartitionHistory, read_history


def with_replays(history: FlushHistory, replays: FlushHistory) -> FlushHistory:
    """Everything that the sink and its replays ever committed. Replays are read first: they follow the sink."""
    partitions = dict(history.partitions)
    for place, known in replays.partitions.items():
        partitions[place] = replace(partitions.get(place, PartitionHistory()), replayed=known.replayed)
    return FlushHistory(partitions, history.flushes | replays.flushes)


def replay_history(ledger: Ledger) -> FlushHistory:
    """`ledger` is the sink's."""
    replays = ledger.replays()
    state = replays.load()
    return read_history(() if state is None else _without_lost(state, replays.history(state)))


def _without_lost(state: SinkState, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """An object whose upload was lost was never there: its dead letters can be replayed again."""
    for manifest in manifests:
        lost = state.lost.get(manifest.name, ())
        yield replace(manifest, objects=tuple(o for n, o in enumerate(manifest.objects) if n not in lost))
