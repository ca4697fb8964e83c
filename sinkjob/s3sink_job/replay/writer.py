"""Writes, commits and publishes dead letters, some groups of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from s3sink_job.base.errors import FinalError, ProtocolError, TransientError
from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.schemas import Schemas
from s3sink_job.decode.bad_records import Fault
from s3sink_job.flush.manifest import ObjectEntry, manifest_name
from s3sink_job.flush.state import SinkState, TopicState
from s3sink_job.layout.keys import ObjectSource, constant_folder, object_key
from s3sink_job.replay.columns import changed_column, starting_columns
from s3sink_job.replay.letters import LetterGroup
from s3sink_job.replay.preview import Preview, Previewer
from s3sink_job.replay.report import ReplayReport, StayingLetter, WritableLetter
from s3sink_job.task.bad_records import BadRecordPolicy, LeftOut
from s3sink_job.task.committable import abort_uploads
from s3sink_job.task.flush_job import RUNS_FOR_REFUSED_KEYS
from s3sink_job.task.routing import Encodings
from s3sink_job.task.slice_result import SliceResult, result_from_json
from s3sink_job.task.slice_task import SliceTask
from s3sink_job.task.slice_tasks import SliceTasks
from s3sink_job.task.task_settings import Group, TopicTarget


@dataclass
class LetterWriter:
    tasks: SliceTasks
    committer: Committer
    """Of the replays."""
    sink_state: SinkState
    sink_schemas: Schemas
    report: ReplayReport
    clock: Callable[[], float]
    _columns: dict[str, KnownColumns] = field(default_factory=dict)
    """By topic, as far as this run knows them."""
    _given_up: set[str] = field(default_factory=set)
    """Topics whose columns of earlier replays do not fit those of the sink any more."""

    def preview(self, groups: list[LetterGroup]) -> None:
        """Reports what would become of them, and writes nothing."""
        task, _, _ = self._task(groups)
        previewer = Previewer(task.settings, task.settings.schema_access())
        for letters in groups:
            target = task.target(letters.place.topic)
            found = previewer.preview(letters, target, self._known(letters.place.topic, typed=_typed(target)))
            self._report_faults(letters, found.faults)
            firsts: dict[Group, int] = {}
            for offset, group in sorted(found.groups.items()):
                first = firsts.setdefault(group, offset)
                url = self._url(task, target, letters, group, first)
                self.report.writable.append(WritableLetter(letters.place, offset, url))
            if found.columns is not None:
                self._columns[letters.place.topic] = found.columns

    def write(self, groups: list[LetterGroup]) -> None:
        """One flush: committed and published, or nothing of it."""
        task, encodings, number = self._task(groups)
        previewer = Previewer(task.settings, task.settings.schema_access())
        results: list[SliceResult] = []
        try:
            for letters in groups:
                results += self._write(task, previewer, letters)
            if not any(result.objects for result in results):
                return
            state = self._with_topics(self.committer.state, groups)
            manifest = self.committer.manifest(state, encodings, number=number, results=results)
        except BaseException:
            abort_uploads((o for r in results for o in r.objects), self.committer.ledger.bucket)
            raise
        # It moves no offsets, so it has no slices.
        manifest = replace(manifest, slices=())
        self.committer.commit(state, manifest)
        lost = {entry.key for entry in self.committer.publish(manifest)}
        for entry in manifest.objects:
            if entry.key in lost:
                self.report.lost += entry.rows
            else:
                self.report.replayed += entry.rows
                self.report.objects.append(self.committer.ledger.bucket.named(entry.bucket).url(entry.key))

    def _write(self, task: SliceTask, previewer: Previewer, letters: LetterGroup) -> list[SliceResult]:
        """The result, if anything can be written."""
        topic = letters.place.topic
        target = task.target(topic)
        known = self._known(topic, typed=_typed(target))
        preview = previewer.preview(letters, target, known)
        rest = letters.without(preview.faults)
        result = None if rest is None else self._run(replace(task, schemas={topic: known}), letters, rest)
        refused = {} if result is None else dict.fromkeys(result.skipped, REFUSED)
        self._report_faults(letters, {**preview.faults, **refused})
        if result is None:
            return []
        try:
            objects = tuple(_with_offsets(entry, preview, refused) for entry in result.objects)
        except ProtocolError:
            abort_uploads(result.objects, self.committer.ledger.bucket)
            raise
        if result.schema is not None:
            if column := changed_column(known, result.schema):
                abort_uploads(objects, self.committer.ledger.bucket)
                raise FinalError(
                    f"replaying {letters.slice} would change the type of column {column} of topic {topic}, which the "
                    "sink has written otherwise. Leave these dead letters out with --reason or --until",
                    reason="ColumnWouldChange",
                )
            self._columns[topic] = result.schema
        return [replace(result, objects=objects, skipped=())]

    def _run(self, task: SliceTask, letters: LetterGroup, rest: LetterGroup) -> SliceResult:
        """The same task that a flush runs, in this process."""
        task = replace(task, slices=(letters.slice,))
        for _ in range(1 + RUNS_FOR_REFUSED_KEYS):
            (row,) = task([rest.batch()])
            result = result_from_json(row.column("result")[0].as_py())
            if not result.refused_keys:
                break
            known = {**task.refused_keys.get(letters.slice, {}), **dict(result.refused_keys)}
            task = replace(task, refused_keys={letters.slice: known})
        if (failure := result.failure) is not None:
            error = TransientError if failure.retryable else FinalError
            raise error(f"replaying {letters.slice}: {failure.message}", reason=failure.reason)
        return result

    def _task(self, groups: list[LetterGroup]) -> tuple[SliceTask, Encodings, int]:
        ledger, state = self.committer.ledger, self.committer.state
        number = ledger.next_number(state)
        topics = {letters.place.topic for letters in groups}
        encodings = self.tasks.routing.encodings(topics).at(max(int(self.clock() * 1000), state.stamp + 1))
        slices = tuple(letters.slice for letters in groups)
        name = manifest_name(number, ledger.writer)
        task = self.tasks.task(slices, name, encodings, {}, conditional=ledger.conditional)
        settings = replace(task.settings, bad_records=BadRecordPolicy(), letters=None, object_limit=None, replay=True)
        # Whatever errors.records says: a record that fails again is left out, and stays a dead letter.
        committed = dict.fromkeys(slices, LeftOut())
        return replace(task, settings=settings, committed=committed), encodings, number

    def _known(self, topic: str, *, typed: bool) -> KnownColumns:
        if topic not in self._columns:
            state = self.committer.state
            sinks = self.sink_schemas.known(self.sink_state, {topic} & set(self.sink_state.topics)).get(topic)
            replays = self.committer.schemas.known(state, {topic} & set(state.topics)).get(topic)
            self._columns[topic] = starting_columns(sinks, replays, typed=typed)
            if replays is not None and self._columns[topic] == (sinks or NO_COLUMNS):
                self._given_up.add(topic)
        return self._columns.get(topic, NO_COLUMNS)

    def _with_topics(self, state: SinkState, groups: list[LetterGroup]) -> SinkState:
        """The state keeps the columns of each topic, and no offsets."""
        new = {letters.place.topic: TopicState(id="") for letters in groups}
        known = {name: replace(t, schema="") if name in self._given_up else t for name, t in state.topics.items()}
        self._given_up.clear()
        return replace(state, topics={**new, **known})

    def _report_faults(self, letters: LetterGroup, faults: Mapping[int, Fault]) -> None:
        self.report.staying += [StayingLetter(letters.place, offset, fault) for offset, fault in sorted(faults.items())]

    def _url(self, task: SliceTask, target: TopicTarget, letters: LetterGroup, group: Group, first: int) -> str:
        encoding, place = target.encoding, letters.place
        folder = group[0] if encoding.folders_vary else constant_folder(encoding.layout, place.topic, place.partition)
        at = ObjectSource(place.topic, place.generation, place.partition, first)
        mark = task.settings.name_mark(encoding.layout)
        key = object_key(target.destination.prefix, encoding.layout, at, folder, encoding.extension, mark)
        return f"s3://{target.destination.bucket}/{key}"


REFUSED = Fault("KeyRefused", "the store refuses the key of its object")


def _typed(target: TopicTarget) -> bool:
    return target.encoding.decoding.typed


def _with_offsets(entry: ObjectEntry, preview: Preview, refused: Mapping[int, Fault]) -> ObjectEntry:
    """Objects of a group follow one another, so its group, first and last offset tell which records it holds."""
    offsets = tuple(
        offset
        for offset, group in sorted(preview.groups.items())
        if group == entry.group and entry.first <= offset <= entry.last and offset not in refused
    )
    if len(offsets) != entry.rows:
        raise ProtocolError(f"{entry.key} has {entry.rows} rows, and {len(offsets)} dead letters were written to it")
    return replace(entry, offsets=offsets)
