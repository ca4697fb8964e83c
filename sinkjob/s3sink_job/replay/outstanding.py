"""Which dead letters the sink has that were not replayed yet, by its manifests and those of its replays."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import number_of
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import PartitionGeneration, WrittenObject, read_history
from s3sink_job.proof.replays import replay_history

Offsets = Mapping[PartitionGeneration, AbstractSet[int]]


@dataclass(frozen=True)
class Outstanding:
    sink: str
    flush: int
    """The number of the last flush that is published."""
    flushes: frozenset[str]
    """Names of the flushes up to it."""
    in_objects: Offsets
    """Dead letters below a prefix."""
    objects: tuple[WrittenObject, ...]
    """Those that hold them."""
    sent: Offsets
    """Dead letters in topics."""
    topics: tuple[str, ...]
    ever_sent: Offsets
    """Dead letters in topics, replayed or not."""
    without_headers: int
    """Dead letters that were sent with `headers: false`: nothing says which record they were."""

    @property
    def readable(self) -> int:
        return sum(len(offsets) for known in (self.in_objects, self.sent) for offsets in known.values())

    def has(self, place: PartitionGeneration, offset: int) -> bool:
        return offset in self.in_objects.get(place, ()) or offset in self.sent.get(place, ())

    def sent_by(self, sink: str, flush: str, place: PartitionGeneration, offset: int) -> bool:
        """Whether the sink sent it. One of the same name, in another cluster or before, has flushes of other names."""
        return sink == self.sink and flush in self.flushes and offset in self.ever_sent.get(place, ())


def outstanding(ledger: Ledger, state: SinkState, sink: str) -> Outstanding:
    published = (manifest for manifest in ledger.current(state) if manifest.name != state.publishing)
    history, replays = read_history(published), replay_history(ledger, state)
    in_objects: dict[PartitionGeneration, set[int]] = {}
    sent: dict[PartitionGeneration, set[int]] = defaultdict(set)
    ever_sent: dict[PartitionGeneration, set[int]] = defaultdict(set)
    objects: list[WrittenObject] = []
    topics, without_headers = set(), 0
    for place, known in sorted(history.partitions.items()):
        done = {offset for written in replays.of(place).replayed for offset in written.entry.offsets}
        if own := known.letters - done:
            in_objects[place] = own
            order = sorted(own)
            objects += [o for o in known.objects if o.entry.letters and _holds_any(o, order)]
        for one in known.sent:
            ever_sent[place].update(one.offsets)
            left = set(one.offsets) - done
            if not one.topic.context:
                without_headers += len(left)
            elif left:
                sent[place] |= left
                topics.add(one.topic.name)
    return Outstanding(
        sink=sink,
        flush=max(map(number_of, history.flushes), default=0),
        flushes=history.flushes,
        in_objects=in_objects,
        objects=tuple(objects),
        sent=sent,
        topics=tuple(sorted(topics)),
        ever_sent=ever_sent,
        without_headers=without_headers,
    )


def _holds_any(written: WrittenObject, offsets: list[int]) -> bool:
    """`offsets` are sorted."""
    at = bisect_left(offsets, written.entry.first)
    return at < len(offsets) and offsets[at] <= written.entry.last
