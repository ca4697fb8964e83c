"""What must hold at every moment: checked at each change of the store."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

from s3sink_job.base.errors import S3SinkError
from s3sink_job.commit.current_pointer import NAME
from s3sink_job.flush.manifest import STAGED, Gap, Manifest, manifest_from_json, number_of
from s3sink_job.flush.refresh import last_replaced, unpublished_since, visible_state
from s3sink_job.flush.state import Refresh, RefreshPhase, SinkState, same_topic
from s3sink_job.flush.statefile import state_from_json
from s3sink_job.stores.object_tags import FLUSH_TAG
from tests.protocol.log import BAD
from tests.protocol.store import Stored

STATE_FOLDER = ".s3sink/"
LETTERS = "_dead_letter"
_ORDER = list(RefreshPhase)


def began_or_abandoned(before: SinkState, after: SinkState) -> bool:
    """Whether a full refresh began, or was abandoned. Both are generations."""
    old, new = before.refresh, after.refresh
    return new is not None and (old is None or (old.number, old.run) != (new.number, new.run))


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
        self.present: dict[str, str] = {}
        """The key of each object that became visible and that no driver removed, and its flush."""
        self.abandoned: set[int] = set()
        """Generations of full refreshes that were abandoned."""
        self.abandoned_flushes: set[str] = set()
        self.runs: list[str] = []
        """Full refreshes that began."""
        self.pointer = 0
        """The number of the full refresh in `_current.json`."""

    def copy(self, blame: Callable[[str], None]) -> Watchdog:
        made = Watchdog(conditional=self.conditional, blame=blame)
        made.history, made.committed, made.manifests = list(self.history), dict(self.committed), dict(self.manifests)
        made.holders = {record: list(keys) for record, keys in self.holders.items()}
        made.letters = {record: list(keys) for record, keys in self.letters.items()}
        made.present, made.abandoned = dict(self.present), set(self.abandoned)
        made.abandoned_flushes = set(self.abandoned_flushes)
        made.runs, made.pointer = list(self.runs), self.pointer
        return made

    def changed(self, key: str, before: Stored | None, after: Stored) -> None:
        if key.endswith("/state.json"):
            self._state(after)
        elif key == NAME:
            self._pointer(after)
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
            self._compare_runs(self.history[-1].refresh, state)
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
            cuts = any(t not in before.truncations for t in after.truncations) or began_or_abandoned(before, after)
            if not new and topic.generation != old.generation + cuts and same_topic(topic.id, old.id):
                self.blame(f"topic {name} got generation {topic.generation} without a cause")

    def _compare_runs(self, before: Refresh | None, state: SinkState) -> None:
        after = state.refresh
        if after is None:
            return
        if before is None or after.number > before.number:
            if after.run in self.runs:
                self.blame(f"run {after.run} began twice")
            self.runs.append(after.run)
        elif before.phase is RefreshPhase.WRITING and after.run != before.run:
            former, last = before.former.get("t"), self.history[-1].topics["t"]
            self.abandoned |= set(range(former.generation + 1 if former else 1, last.generation + 1))
            self.abandoned_flushes |= {name for name in self.committed if number_of(name) > number_of(before.since)}
        elif _ORDER.index(after.phase) < _ORDER.index(before.phase):
            self.blame(f"run {after.run} went from {before.phase} to {after.phase}")
        if after.phase is RefreshPhase.REMOVING and (before is None or before.phase is not RefreshPhase.REMOVING):
            self.check_whole(state, "became current")

    def check_whole(self, state: SinkState, what: str) -> None:
        """Every object of the flushes that the state calls current is there, unless a reader removed it."""
        visible, mended = visible_state(state), set[str]()
        name, until = visible.last, last_replaced(visible)
        while name is not None and name != until and name in self.manifests:
            manifest = self.manifests[name]
            for number, entry in enumerate(manifest.objects):
                waits = name == visible.publishing or number in visible.lost.get(name, ()) or entry.letters == STAGED
                if not waits and entry.key not in mended and entry.key not in self.present:
                    self.blame(f"{what} while {entry.key} of the current flush {name} is not there")
            mended |= set(manifest.replaces)
            name = manifest.previous

    def _pointer(self, stored: Stored) -> None:
        """It never goes back, and names a run that is current, or was."""
        number = json.loads(stored.body)["number"]
        refresh = self.history[-1].refresh
        if number < self.pointer:
            self.blame(f"{NAME} went back from run {self.pointer} to {number}")
        current = refresh is not None and refresh.current_at is not None and refresh.number >= number
        if not current and number > max((r.number for r in self._were_current()), default=0):
            self.blame(f"{NAME} names run {number}, which is not current")
        self.pointer = number

    def _were_current(self) -> list[Refresh]:
        return [s.refresh for s in self.history if s.refresh is not None and s.refresh.current_at is not None]

    def deleted(self, key: str, stored: Stored) -> None:
        """A driver removed an object."""
        if key.startswith(STATE_FOLDER) or FLUSH_TAG not in stored.metadata:
            return
        self.present.pop(key, None)
        state = self.history[-1]
        replaced = number_of(last_replaced(state))
        if number_of(stored.metadata[FLUSH_TAG]) > replaced:
            self.blame(f"{key} of the flush {stored.metadata[FLUSH_TAG]} was removed, which is not replaced")
        self.check_whole(state, f"{key} was removed")

    def _check_hidden(self, key: str, flush: str) -> None:
        """Nothing of a run is visible before everything of it is written, or after it was abandoned."""
        state = self.history[-1]
        refresh, number = state.refresh, number_of(flush)
        if refresh is not None and refresh.phase is RefreshPhase.WRITING and number > number_of(refresh.since):
            self.blame(f"{key} of the flush {flush} became visible while run {refresh.run} is writing")
        if flush in self.abandoned_flushes:
            self.blame(f"{key} of the flush {flush} became visible, but its run was abandoned")

    def _visible(self, key: str, stored: Stored) -> None:
        flush = stored.metadata[FLUSH_TAG]
        self.present[key] = flush
        if self.conditional and self.history and flush in self.manifests:
            self._check_hidden(key, flush)
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
        """Uploads of the flushes that the stored state is about to publish."""
        if not self.history:
            return set()
        state = self.history[-1]
        names = {state.publishing}
        name, until = unpublished_since(state)
        while name is not None and name != until:
            names.add(name)
            name = self.manifests[name].previous
        return {o.upload_id for name in names if name in self.manifests for o in self.manifests[name].objects}

    def gaps(self) -> list[Gap]:
        return [gap for manifest in self.committed_manifests() for gap in manifest.gaps]
