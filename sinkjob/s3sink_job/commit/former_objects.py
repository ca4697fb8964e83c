"""Removes the objects of flushes that a full refresh replaced: those that their manifests list, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool

from s3sink_job.base.errors import FinalError
from s3sink_job.commit.committer import Committer
from s3sink_job.flush.manifest import STAGED, Manifest, ObjectEntry
from s3sink_job.flush.refresh import removed_from
from s3sink_job.report import logs
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.object_tags import SINK_TAG
from s3sink_job.stores.request_limit import PARALLEL

OBJECTS_PER_SWAP = 1000
"""Objects after which the state stores how far the removal is."""
KEPT_SHOWN = 20


@dataclass(frozen=True)
class FormerObjects:
    committer: Committer
    sink: str
    """`<namespace>/<name>`, as in the metadata of objects."""
    on_removed: Callable[[int], None] = lambda count: None

    def remove_some(self) -> bool:
        """Removes the objects of some flushes. False if none is left."""
        state, ledger = self.committer.state, self.committer.ledger
        refresh = state.refresh
        assert refresh is not None
        last: Manifest | None = None
        entries: list[ObjectEntry] = []
        for last in ledger.chain(refresh.cursor, refresh.replaced):
            entries += _stored(last)
            if len(entries) >= OBJECTS_PER_SWAP:
                break
        if last is None:
            return False
        kept = self._remove(entries)
        self.committer.swap(removed_from(state, last.previous, kept))
        return last.previous not in {None, refresh.replaced}

    def remove_replays(self) -> None:
        """Objects of dead letters that a replay wrote. There are few, so it is done in one go."""
        refresh, replays = self.committer.state.refresh, self.committer.ledger.replays()
        assert refresh is not None
        for manifest in replays.chain(refresh.replays_until, refresh.replays):
            self._remove(_stored(manifest))

    def _remove(self, entries: Iterable[ObjectEntry]) -> int:
        """The number of objects that could not be deleted."""
        bucket = self.committer.ledger.bucket

        def remove(entry: ObjectEntry) -> bool | str:
            return _remove(bucket.named(entry.bucket), entry.key, self.sink)

        # Not a ThreadPoolExecutor: Python waits for those at exit, and a hanging store must not keep a driver alive.
        listed = list(entries)
        with ThreadPool(min(PARALLEL, max(1, len(listed)))) as pool:
            results = pool.map(remove, listed, chunksize=1)
        refusals = [result for result in results if isinstance(result, str)]
        self.on_removed(results.count(True))
        for text in refusals[:KEPT_SHOWN]:
            logs.warning("a replaced object stays, because the store does not delete it", cause=text)
        return len(refusals)


def _stored(manifest: Manifest) -> Iterator[ObjectEntry]:
    """Objects that hold data or dead letters. Those that are staged for a topic are gone since they were sent."""
    return (entry for entry in manifest.objects if entry.letters != STAGED)


def _remove(bucket: Bucket, key: str, sink: str) -> bool | str:
    """Whether the object was there and is deleted now, or why the store refuses that.

    An object of somebody else is left alone.
    """
    try:
        found = bucket.head(key)
        if found is None:
            return False
        if found.metadata.get(SINK_TAG) != sink:
            logs.warning("an object with the name of a replaced one is not this sink's, and stays", key=bucket.url(key))
            return False
        bucket.delete(key)
    except FinalError as error:
        # A lock, a policy or a missing permission. A retry would not help, and the run is current already.
        return str(error)
    return True
