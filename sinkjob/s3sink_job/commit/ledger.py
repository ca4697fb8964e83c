"""What a sink keeps in the bucket: the state object, the manifests of its flushes, and inferred schemas."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from s3sink_job.base.errors import FencedError, FinalError, ProtocolError, TransientError
from s3sink_job.commit.ownership import check_not_rolled_back, check_owner, check_resource
from s3sink_job.commit.state_object import StateObject
from s3sink_job.flush.manifest import Manifest, manifest_from_json, number_of
from s3sink_job.flush.refresh import last_replaced, visible_state
from s3sink_job.flush.rollback import TYPED_SCHEMA
from s3sink_job.flush.state import Owner, Resource, SinkState
from s3sink_job.flush.transitions import raise_epoch
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import PreconditionFailed

TAKE_OVER_ATTEMPTS = 10
REPLAYS = "replay"
"""The folder of replays, beside the state of the sink."""


class Ledger:
    def __init__(
        self, bucket: Bucket, folder: str, owner: Owner, *, conditional: bool, schemas: str | None = None
    ) -> None:
        """`schemas` is the folder whose schemas it shares; None for its own."""
        self.bucket = bucket
        self.folder = folder
        self._schemas = schemas or folder
        self.owner = owner
        self.conditional = conditional
        self.state_object = StateObject(bucket, f"{folder}/state.json", conditional=conditional)
        self._number = 0

    def use(self, bucket: Bucket) -> None:
        """The same bucket with other credentials."""
        self.bucket = self.state_object.bucket = bucket

    @property
    def writer(self) -> str:
        return self.state_object.writer

    @property
    def state_key(self) -> str:
        return self.state_object.key

    def manifest_key(self, name: str) -> str:
        return f"{self.folder}/flushes/{name}.json"

    def schema_key(self, name: str) -> str:
        return f"{self._schemas}/schemas/{name}.json"

    def replays(self, *, conditional: bool | None = None) -> Ledger:
        """Of the replays of this sink's dead letters: a state and an epoch of its own, so no driver is fenced."""
        wanted = self.conditional if conditional is None else conditional
        return Ledger(self.bucket, f"{self.folder}/{REPLAYS}", self.owner, conditional=wanted, schemas=self.folder)

    def load(self) -> SinkState | None:
        """The stored state; None if this sink never stored one. Raises if it was lost."""
        state = self.state_object.load()
        if state is None and (left := self.bucket.first_key(f"{self.folder}/flushes/")) is not None:
            raise ProtocolError(
                f"state lost: {self.state_object.url} is missing, but {left} exists. Restore the state object from a "
                "version or a backup. Starting without it would write every record again. To start from scratch on "
                "purpose, use another metadata.name and prefix",
                reason="StateLost",
            )
        return state

    def never_ran(self) -> FinalError:
        """For commands that need a state."""
        return FinalError(
            f"there is no state at {self.state_object.url}: the sink has never run, or it ran with another name, "
            "namespace, bucket or statePrefix",
            reason="NoState",
        )

    def load_checked(self, adopt_from: str = "") -> SinkState | None:
        """The stored state, without taking over. Refused if it is another sink's, or older than its manifests."""
        state = self.load()
        if state is not None:
            check_owner(self.state_object.url, state.owner, self.owner, adopt_from)
            self.refuse_rolled_back(state)
        return state

    def refuse_rolled_back(self, state: SinkState) -> None:
        check_not_rolled_back(self, state)

    def take_over(self, adopt_from: str = "", resource: Resource | None = None) -> SinkState:
        """Reads or creates the state and raises its epoch, which fences every earlier driver."""
        for _ in range(TAKE_OVER_ATTEMPTS):
            state = self.load_checked(adopt_from) or SinkState(owner=self.owner)
            if adopt_from != state.owner.cluster:
                check_resource(self.state_object.url, state.resource, resource, self.owner.cluster)
            try:
                return self.swap(raise_epoch(replace(state, owner=self.owner, resource=resource or state.resource)))
            except FencedError:
                continue  # another driver is starting at this moment: the last one to swap runs
        raise TransientError(f"could not take over {self.state_object.url}: other drivers of this sink keep starting")

    def swap(self, state: SinkState) -> SinkState:
        return self.state_object.swap(state)

    def confirm(self) -> None:
        """Raises FencedError if another driver has taken over."""
        self.state_object.confirm()

    def next_number(self, state: SinkState) -> int:
        """Never the same number twice: a late manifest of a failed attempt must not be mistaken for a new one."""
        self._number = max(self._number, state.flush) + 1
        return self._number

    def put_manifest(self, manifest: Manifest) -> None:
        key = self.manifest_key(manifest.name)
        try:
            self.bucket.put(key, manifest.to_json(), if_absent=self.conditional)
        except PreconditionFailed as answer:
            # Nobody else uses this name. If the object exists, an earlier attempt of ours succeeded.
            if self.bucket.head(key) is None:
                url = self.bucket.url(key)
                raise TransientError(f"{url}: the store says that it exists, but it does not") from answer

    def manifest(self, name: str) -> Manifest:
        key = self.manifest_key(name)
        found = self.bucket.get(key)
        if found is None:
            raise ProtocolError(
                f"the state refers to flush {name}, but {self.bucket.url(key)} is missing: restore it",
                reason="StateLost",
            )
        return manifest_from_json(found[0], self.bucket.url(key))

    def history(self, state: SinkState) -> Iterator[Manifest]:
        """Every committed flush, the last one first. Manifests of attempts that were not committed are left out."""
        return self.chain(state.last)

    def current(self, state: SinkState) -> Iterator[Manifest]:
        """The flushes whose objects are the sink's output: without those that a full refresh replaced, or writes."""
        visible = visible_state(state)
        return self.chain(visible.last, last_replaced(visible))

    def chain(self, last: str | None, after: str | None = None) -> Iterator[Manifest]:
        """The flushes from `last` back to the one that follows `after`, or to the first one."""
        while last is not None and number_of(last) > number_of(after):
            manifest = self.manifest(last)
            yield manifest
            last = manifest.previous

    def put_schema(self, text: str, *, typed: bool = False) -> str:
        """Stores a schema under the hash of its text, which is its name; `typed` has types that 0.1.0 does not read."""
        name = TYPED_SCHEMA * typed + hashlib.sha256(text.encode()).hexdigest()[:32]
        self.bucket.put(self.schema_key(name), text.encode())
        return name

    def schema(self, name: str) -> str:
        found = self.bucket.get(self.schema_key(name))
        if found is None:
            raise ProtocolError(
                f"the state refers to schema {name}, but {self.bucket.url(self.schema_key(name))} is missing: restore "
                "it. Without it the types of columns might differ between objects",
                reason="StateLost",
            )
        return found[0].decode()
