"""Which dead letters the sink has that were not replayed yet, by its manifests and those of its replays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from s3sink_job.commit.ledger import Ledger
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
    without_headers: int
    """Dead letters that were sent with `headers: false`: nothing says which record they were."""

    def has(self, place: PartitionGeneration, offset: int) -> bool:
        return offset in self.in_objects.get(place, ()) or offset in self.sent.get(place, ())

    @property
    def count(self) -> int:
        found = sum(len(offsets) for known in (self.in_objects, self.sent) for offsets in known.values())
        return found + self.without_headers


def outstanding(ledger: Ledger, state: SinkState) -> Outstanding:
    published = (manifest for manifest in ledger.history(state) if manifest.name != state.publishing)
    history, replays = read_history(published), replay_history(ledger)
    in_objects, objects, topics, without_headers = {}, [], set(), 0
    sent: dict[PartitionGeneration, frozenset[int]] = {}
    ever_sent: dict[PartitionGeneration, frozenset[int]] = {}
    for place, known in sorted(history.partitions.items()):
        done = {offset for written in replays.of(place).replayed for offset in written.entry.offsets}
        if own := known.letters - done:
            in_objects[place] = frozenset(own)
            objects += [o for o in known.objects if o.entry.letters and _holds_any(o, own)]
        for one in known.sent:
            ever_sent[place] = ever_sent.get(place, frozenset()) | frozenset(one.offsets)
            left = frozenset(one.offsets) - done
            if not one.topic.context:
                without_headers += len(left)
            elif left:
                sent[place] = sent.get(place, frozenset()) | left
                topics.add(one.topic.name)
    return Outstanding(in_objects, tuple(objects), sent, tuple(sorted(topics)), ever_sent, without_headers)


def _holds_any(written: WrittenObject, offsets: set[int]) -> bool:
    return any(written.entry.first <= offset <= written.entry.last for offset in offsets)
