"""What must hold at every moment: checked at each change of the store."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

from s3sink_job.base.errors import S3SinkError
from s3sink_job.flush.manifest import Gap, Manifest, manifest_from_json
from s3sink_job.flush.state import SinkState, same_topic
from s3sink_job.flush.statefile import state_from_json
from s3sink_job.stores.object_tags import FLUSH_TAG
from tests.protocol.log import BAD
from tests.protocol.store import Stored

STATE_FOLDER = ".s3sink/"
LETTERS = "_dead_letter"


class Watchdog:
    """Keeps the history of the state object and of what became visible."""

    def __init__(self, *, conditional: bool, blame: Callable[[str], None]) -> None:
        self.conditional = conditional
        self.blame = blame
        self.history: list[SinkState] = []
        self.committed: dict[str, None] = {}
        """Names of the flushes that some stored state named, in order."""
        self.manifests: dict[str, Manifest] = {}
        """Every manifest there is, by name, whether or not a state ever named it."""
        self.holders: dict[tuple[int, bytes], list[str]] = {}
        """Each visible record of a generation, and the objects that hold it."""
        self.letters: dict[tuple[int, int, int], list[str]] = {}
        """Generation, partition and offset of each visible dead letter, and the objects that hold it."""

    def copy(self, blame: Callable[[str], None]) -> Watchdog:
        made = Watchdog(conditional=self.conditional, blame=blame)
        made.history, made.committed, made.manifests = list(self.history), dict(self.committed), dict(self.manifests)
        made.holders = {record: list(keys) for record, keys in self.holders.items()}
        made.letters = {record: list(keys) for record, keys in self.letters.items()}
        return made

    def changed(self, key: str, before: Stored | None, after: Stored) -> None:
        if key.endswith("/state.json"):
            self._state(after)
        elif before is not None and (before.body, before.upload_id) != (after.body, after.upload_id):
            self.blame(f"{key} was overwritten")
        elif "/flushes/" in key:
            manifest = manifest_from_json(after.body, key)
            self.manifests[manifest.name] = manifest
        elif not key.startswith(STATE_FOLDER):
            self._visible(key, after)

    def _state(self, stored: Stored) -> None:
        try:
            state = state_from_json(stored.body, "state.json")
        except S3SinkError as error:
            self.blame(str(error))
            return
        if self.history and self.conditional:
            self._compare(self.history[-1], state)
        self.history.append(state)
        if state.last is not None:
            self.committed.setdefault(state.last)

    def _compare(self, before: SinkState, after: SinkState) -> None:
        if after.revision <= before.revision:
            self.blame(f"the revision went from {before.revision} to {after.revision}")
        if after.epoch < before.epoch:
            self.blame(f"the epoch went from {before.epoch} to {after.epoch}")
        if before.resource and after.resource and after.resource.older_than(before.resource):
            self.blame(f"an older resource took over: {after.resource} from {before.resource}")
        self._compare_resets(before, after)
        for name, old in before.topics.items():
            new = after.topics.get(name)
            if new is None or new.generation < old.generation:
                self.blame(f"topic {name} went back from generation {old.generation} to {new}")
            elif new.generation == old.generation:
                for partition, at in old.partitions.items():
                    offset = new.partitions[partition].offset if partition in new.partitions else None
                    if offset is None or offset < at.offset:
                        self.blame(f"{name}-{partition} moved back from {at.offset} to {offset}")

    def _compare_resets(self, before: SinkState, after: SinkState) -> None:
        """A generation changes with the topic's id or log, or by a reset, which is done once and for all topics."""
        nonces = [reset.nonce for reset in after.resets]
        new = after.resets[len(before.resets) :]
        if after.resets[: len(before.resets)] != before.resets:
            self.blame(f"the resets went from {before.resets} to {after.resets}")
        if len(new) > 1 or len(set(nonces)) < len(nonces):
            self.blame(f"a reset was carried out twice: {nonces}")
        for name, old in before.topics.items():
            topic = after.topics.get(name, old)
            if new and topic.generation != old.generation + 1:
                self.blame(f"topic {name} went from generation {old.generation} to {topic.generation} by a reset")
            cuts = any(t not in before.truncations for t in after.truncations)
            if not new and topic.generation != old.generation + cuts and same_topic(topic.id, old.id):
                self.blame(f"topic {name} got generation {topic.generation} without a cause")

    def _visible(self, key: str, stored: Stored) -> None:
        flush = stored.metadata[FLUSH_TAG]
        listed = self.manifests.get(flush)
        if flush not in self.committed or listed is None:
            self.blame(f"{key} of the flush {flush}, which was never committed, became visible")
        elif (key, stored.upload_id) not in {(o.key, o.upload_id) for o in listed.objects}:
            self.blame(f"{key} became visible as {stored.upload_id}, which the flush {flush} does not list")
        if key.startswith(f"{LETTERS}/"):
            self._letters(key, stored)
            return
        generations = {o.key: o.generation for o in listed.objects} if listed else {}
        for record in stored.body.splitlines():
            holders = self.holders.setdefault((generations.get(key, 0), record), [])
            holders.append(key)
            if len(holders) > 1 and self.conditional:
                self.blame(f"record {record.decode()} is in {' and in '.join(holders)}")

    def _letters(self, key: str, stored: Stored) -> None:
        for line in stored.body.splitlines():
            letter = json.loads(line)
            holders = self.letters.setdefault((letter["generation"], letter["partition"], letter["offset"]), [])
            holders.append(key)
            if base64.b64decode(letter["value"]) != BAD:
                self.blame(f"{key} holds a record that is not bad: {letter}")
            if len(holders) > 1 and self.conditional:
                self.blame(f"dead letter {letter['offset']} is in {' and in '.join(holders)}")

    def sent(self, flush: str, places: list[tuple[int, int, int]]) -> None:
        """A transaction of dead letters was committed."""
        if flush not in self.committed:
            self.blame(f"dead letters of the flush {flush}, which was never committed, were sent")
        for place in places:
            holders = self.letters.setdefault(place, [])
            holders.append(f"the topic by {flush}")
            if len(holders) > 1 and self.conditional:
                self.blame(f"dead letter {place} is in {' and in '.join(holders)}")

    def committed_manifests(self) -> list[Manifest]:
        """Without conditions two drivers may both have committed; a gap of either counts."""
        return [m for m in self.manifests.values() if m.name in self.committed or not self.conditional]

    def skipped(self) -> set[tuple[int, int, int]]:
        """Generation, partition and offset of the bad records that were left out, or that are dead letters."""
        parts = [part for manifest in self.committed_manifests() for part in manifest.slices]
        return {(part.generation, part.partition, o) for part in parts for o in part.skipped} | self.letters.keys()

    def being_published(self) -> set[str]:
        """Uploads of the flush that the stored state is about to publish."""
        name = self.history[-1].publishing if self.history else None
        return {o.upload_id for o in self.manifests[name].objects} if name in self.manifests else set()

    def gaps(self) -> list[Gap]:
        return [gap for manifest in self.committed_manifests() for gap in manifest.gaps]
