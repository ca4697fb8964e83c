"""The sink's state and manifests in the bucket: reading, taking over, and the swap that commits.

A swap that was answered with 412 or not at all may still have been ours. Every attempt carries a revision
of its own, so reading back and comparing revision and writer tells; an outcome that stays unknown is
raised as such, and the driver opens the ledger again before it does anything else.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace

from s3sink_job.engine.publish import FLUSH_TAG
from s3sink_job.errors import FencedError, FinalError, ProtocolError, S3SinkError, TransientError
from s3sink_job.flush.manifest import Manifest, manifest_from_json, number_of
from s3sink_job.flush.state import Owner, Resource, State, raise_epoch
from s3sink_job.flush.statefile import state_from_json, state_to_json
from s3sink_job.stores.bucket import Bucket, PreconditionFailed
from s3sink_job.times import iso

TAKE_OVER_TRIES = 10
ADOPT = "s3sink.dev/adopt-from"
MANIFEST_NAME = re.compile(r"[0-9]{12,}-[0-9a-f]+")
OBJECTS_LOOKED_AT = 100
"""Of a manifest beyond the state. Publishing begins with the first ones."""


class CommitUnknown(TransientError):
    """The swap may or may not have taken effect."""

    reason = "CommitUnknown"


class Ledger:
    def __init__(self, bucket: Bucket, folder: str, owner: Owner, *, conditional: bool) -> None:
        self.bucket = bucket
        self.folder = folder
        self.owner = owner
        self.conditional = conditional
        self.writer = uuid.uuid4().hex[:12]
        self._revision = 0
        self._number = 0
        self._etag = ""

    @property
    def state_key(self) -> str:
        return f"{self.folder}/state.json"

    def manifest_key(self, name: str) -> str:
        return f"{self.folder}/flushes/{name}.json"

    def schema_key(self, name: str) -> str:
        return f"{self.folder}/schemas/{name}.json"

    def load(self) -> State | None:
        """The state as it is; None if this sink never wrote one. Raises if it was lost."""
        found = self.bucket.get(self.state_key)
        if found is None:
            self._etag = ""
            if (left := self.bucket.list_first(f"{self.folder}/flushes/")) is not None:
                raise ProtocolError(
                    f"state lost: s3://{self.bucket.name}/{self.state_key} is missing, but {left} is there. "
                    "Restore the state object from a version or backup; starting afresh would write every "
                    "record again. To start afresh on purpose use another metadata.name and prefix",
                    reason="StateLost",
                )
            return None
        body, self._etag = found
        return state_from_json(body, f"s3://{self.bucket.name}/{self.state_key}")

    def look(self, adopt_from: str = "") -> State | None:
        """The state, without taking it over; refused if it is another sink's, or older than its manifests."""
        state = self.load()
        if state is not None and not state.owner.same_sink(self.owner):
            self._check_owner(state.owner, adopt_from)
        if state is not None:
            self.refuse_rolled_back(state)
        return state

    def open(self, adopt_from: str = "", resource: Resource | None = None) -> State:
        """Reads or creates the state and raises its epoch, so that every earlier driver is fenced."""
        for _ in range(TAKE_OVER_TRIES):
            state = self.look(adopt_from) or State(owner=self.owner)
            if adopt_from != state.owner.cluster:
                self._check_resource(state.resource, resource)
            try:
                return self.swap(raise_epoch(replace(state, owner=self.owner, resource=resource or state.resource)))
            except FencedError:
                continue  # another driver is starting at this moment: whoever swaps last, runs
        raise TransientError(f"could not take over {self.state_key}: other drivers keep starting")

    def _check_owner(self, owner: Owner, adopt_from: str) -> None:
        if owner.cluster != adopt_from:
            raise FinalError(
                f"s3://{self.bucket.name}/{self.state_key} belongs to the sink {owner}, this one is {self.owner}: "
                f"use another name or statePrefix, or, if that sink is gone for good, adopt its state with the "
                f"annotation {ADOPT}: {owner.cluster!r}",
                reason="ForeignState",
            )

    def _check_resource(self, holder: Resource | None, ours: Resource | None) -> None:
        """A pod on a node that was cut off may start again with a spec of long ago."""
        if holder is not None and ours is not None and ours.older_than(holder):
            raise FinalError(
                f"s3://{self.bucket.name}/{self.state_key} is held by a newer resource, {holder}; this driver was "
                f"started for {ours} and must not take over. If it runs for the right resource, because the cluster "
                f"was restored from a backup, set the annotation {ADOPT}: {self.owner.cluster!r} and remove it later",
                reason="OlderResource",
            )

    def refuse_rolled_back(self, state: State) -> None:
        """Raises if the state was put back to an older one: its flushes would be written a second time."""
        if not self.conditional:
            return  # AtLeastOnce: what the older state does not know is written again, under other names
        begin = self.manifest_key(f"{state.flush + 1:012d}").removesuffix(".json")
        for key, _ in self.bucket.list(f"{self.folder}/flushes/", after=begin):
            name = key.rpartition("/")[2].removesuffix(".json")
            # Not every store heeds where a list is to begin, and people may put files there.
            if not MANIFEST_NAME.fullmatch(name) or number_of(name) <= state.flush:
                continue
            manifest = self._manifest_if_known(name)
            if manifest and self._was_committed(state, manifest) and not self._moved_on():
                raise ProtocolError(
                    f"state rolled back: s3://{self.bucket.name}/{self.state_key} is at flush {state.flush}, but "
                    f"{key} proves that a later flush was committed. Going on would write its records twice. Restore "
                    f"the newest version of the state object, of {iso(manifest.committed_at)} or later; "
                    "nothing was changed",
                    reason="StateRolledBack",
                )

    def _manifest_if_known(self, name: str) -> Manifest | None:
        """One that a newer release wrote and did not commit says nothing to this one."""
        try:
            return self.manifest(name)
        except ProtocolError as error:
            if error.reason != "NewerFormat":
                raise
            return None

    def _was_committed(self, state: State, manifest: Manifest) -> bool:
        """Whether this manifest shows a state that is later than the one that is stored."""
        if manifest.epoch > state.epoch or number_of(manifest.previous) > state.flush:
            return True
        # Objects that were put whole prove nothing: they show before they are committed.
        uploads = [entry for entry in manifest.objects if entry.upload_id][:OBJECTS_LOOKED_AT]
        found = (self.bucket.named(entry.bucket).head(entry.key) for entry in uploads)
        return any(one is not None and one.metadata.get(FLUSH_TAG) == manifest.name for one in found)

    def _moved_on(self) -> bool:
        """Whether another driver has stored a later state meanwhile."""
        found = self.bucket.get(self.state_key)
        return found is not None and found[1] != self._etag

    def next_number(self, state: State) -> int:
        """Never the same number twice, so that a late manifest of a failed attempt is never taken for this one."""
        self._number = max(self._number, state.flush) + 1
        return self._number

    def put_manifest(self, manifest: Manifest) -> None:
        key = self.manifest_key(manifest.name)
        try:
            self.bucket.put(key, manifest.to_json(), if_absent=self.conditional)
        except PreconditionFailed as answer:
            # Nobody else uses this name: an earlier try of ours got through, if it is there.
            if self.bucket.head(key) is None:
                raise TransientError(f"s3://{self.bucket.name}/{key}: refused as taken, but not there") from answer

    def manifest(self, name: str) -> Manifest:
        key = self.manifest_key(name)
        found = self.bucket.get(key)
        if found is None:
            raise ProtocolError(
                f"the state names the flush {name}, but s3://{self.bucket.name}/{key} is missing: restore it",
                reason="StateLost",
            )
        return manifest_from_json(found[0], f"s3://{self.bucket.name}/{key}")

    def put_schema(self, text: str) -> str:
        """Stores a schema under the hash of its text, which is its name from then on."""
        name = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.bucket.put(self.schema_key(name), text.encode())
        return name

    def schema(self, name: str) -> str:
        found = self.bucket.get(self.schema_key(name))
        if found is None:
            raise ProtocolError(
                f"the state names the schema {name}, but s3://{self.bucket.name}/{self.schema_key(name)} is missing: "
                "restore it; without it the types of columns might change between objects",
                reason="StateLost",
            )
        return found[0].decode()

    def history(self, state: State) -> Iterator[Manifest]:
        """Every committed flush, the last one first. Manifests of attempts that were not committed stay out."""
        name = state.last
        while name is not None:
            manifest = self.manifest(name)
            yield manifest
            name = manifest.previous

    def swap(self, state: State) -> State:
        """The commit point. Returns the state as stored, or raises FencedError or CommitUnknown."""
        self._revision = max(self._revision, state.revision) + 1
        target = replace(state, revision=self._revision, writer=self.writer)
        if self.conditional:
            self._etag = self._swap(target)
        else:
            self._overwrite(target)
        return target

    def confirm(self) -> None:
        """Raises FencedError if another driver has taken over."""
        found = self.bucket.get(self.state_key)
        if found is not None and found[1] != self._etag:
            stored = state_from_json(found[0], self.state_key)
            if stored.writer != self.writer:
                raise _fenced(stored)

    def _swap(self, target: State) -> str:
        body = state_to_json(target)
        for attempt in range(self.bucket.retrying.max + 1):
            if attempt:
                time.sleep(self.bucket.retrying.wait(attempt - 1))
            try:
                return self.bucket.put(self.state_key, body, if_match=self._etag, if_absent=not self._etag, retry=False)
            except PreconditionFailed:
                if (etag := self._read_back(target)) is not None:
                    return etag
            except TransientError as error:
                self.bucket.on_retry(str(error))
                try:
                    if (etag := self._read_back(target)) is not None:
                        return etag
                except TransientError:
                    continue
        raise CommitUnknown(f"s3://{self.bucket.name}/{self.state_key}: the store did not say whether it took it")

    def _read_back(self, target: State) -> str | None:
        """The ETag if the target is stored, None if what was there before still is; else we are fenced."""
        found = self.bucket.get(self.state_key)
        if found is None and not self._etag:
            return None
        if found is None:
            raise ProtocolError(f"{self.state_key} vanished while this driver ran", reason="StateLost")
        body, etag = found
        if etag == self._etag:
            return None
        stored = state_from_json(body, self.state_key)
        if (stored.revision, stored.writer) == (target.revision, target.writer):
            return etag
        raise _fenced(stored)

    def _overwrite(self, target: State) -> None:
        """Without conditional writes: look, then write. Offsets never move back, whoever wrote them."""
        found = self.bucket.get(self.state_key)
        if found is not None:
            stored = state_from_json(found[0], self.state_key)
            if stored.writer != self.writer and (stored.epoch >= target.epoch or _moves_back(stored, target)):
                raise _fenced(stored)
        self._etag = self.bucket.put(self.state_key, state_to_json(target))


def _moves_back(stored: State, target: State) -> bool:
    for topic, known in stored.topics.items():
        ours = target.topics.get(topic)
        if ours is None or ours.generation < known.generation:
            return True
        if ours.generation == known.generation:
            for partition, at in known.partitions.items():
                if partition not in ours.partitions or ours.partitions[partition].offset < at.offset:
                    return True
    return False


def _fenced(stored: State) -> S3SinkError:
    return FencedError(
        f"another driver of this sink took over (epoch {stored.epoch}, writer {stored.writer}); "
        "this one stops and has written nothing since"
    )
