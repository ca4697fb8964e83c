"""Which dead letters the sink has that were not replayed yet, by its manifests and those of its replays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import Manifest
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import PartitionGeneration, WrittenObject, read_history
from s3sink_job.proof.replays import replay_history


@dataclass(frozen=True)
class Outstanding:
    in_objects: Mapping[PartitionGeneration, frozenset[int]]
    """Offsets of dead letters below a prefix."""
    objects: tuple[WrittenObject, ...]
    """Those that hold them."""
    sent: Mapping[PartitionGeneration, frozenset[int]]
    """Offsets of dead letters in topics."""
    topics: tuple[str, ...]
    ever_sent: Mapping[PartitionGeneration, frozenset[int]]
    """Offsets of dead letters in topics, replayed or not."""

    def has(self, place: PartitionGeneration, offset: int) -> bool:
        return offset in self.in_objects.get(place, ()) or offset in self.sent.get(place, ())

    @property
    def count(self) -> int:
        return sum(len(offsets) for found in (self.in_objects, self.sent) for offsets in found.values())


def outstanding(ledger: Ledger, state: SinkState) -> Outstanding:
    topics: set[str] = set()

    def published() -> Iterator[Manifest]:
        for manifest in ledger.history(state):
            if manifest.name != state.publishing:
                topics.update([manifest.letter_topic.name] if manifest.letter_topic else [])
                yield manifest

    history, replays = read_history(published()), replay_history(ledger)
    in_objects, sent, objects = {}, {}, []
    for place, known in sorted(history.partitions.items()):
        done = {offset for written in replays.of(place).replayed for offset in written.entry.offsets}
        if own := known.letters - done:
            in_objects[place] = frozenset(own)
            objects += [o for o in known.objects if o.entry.letters and _holds_any(o, own)]
        if own := known.sent - done:
            sent[place] = frozenset(own)
    ever_sent = {place: frozenset(known.sent) for place, known in history.partitions.items() if known.sent}
    return Outstanding(in_objects, tuple(objects), sent, tuple(sorted(topics)) if sent else (), ever_sent)


def _holds_any(written: WrittenObject, offsets: set[int]) -> bool:
    return any(written.entry.first <= offset <= written.entry.last for offset in offsets)
