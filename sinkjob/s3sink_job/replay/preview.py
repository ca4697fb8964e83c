"""What would become of dead letters by the sink's present spec: to which object each goes, or why it stays one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns
from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.batch_parts import in_parts
from s3sink_job.decode.schema_access import SchemaAccess
from s3sink_job.layout.keys import room_for_folder
from s3sink_job.replay.columns import changed_column
from s3sink_job.replay.letters import LetterGroup
from s3sink_job.task.record_pipeline import RecordPipeline
from s3sink_job.task.task_settings import Group, TaskSettings, TopicTarget

LEFT_OUT = Fault("NullValue", "the value is null, and nullValues is Skip")
FILTERED = Fault("Filtered", "the transform leaves it out")


@dataclass(frozen=True)
class Preview:
    groups: Mapping[int, Group] = field(default_factory=dict)
    """By offset: of the dead letters that can be written."""
    faults: Mapping[int, Fault] = field(default_factory=dict)
    """By offset: why the others stay dead letters."""
    columns: KnownColumns | None = None
    """The columns of the topic, with those of these records; None where they are not inferred."""


@dataclass(frozen=True)
class Previewer:
    settings: TaskSettings
    access: SchemaAccess

    def preview(self, letters: LetterGroup, target: TopicTarget, known: KnownColumns | None) -> Preview:
        found = self._build(letters, target, known)
        if not _changed(known, found.columns):
            return found
        # Some record changes a column. Which one shows if each is taken by itself.
        changing = {}
        for letter in letters.letters:
            alone = self._build(LetterGroup((letter,)), target, known)
            if column := _changed(known, alone.columns):
                changing[letter.offset] = Fault("ColumnWouldChange", f"it would change the type of column {column}")
        rest = letters.without(changing)
        found = self._build(rest, target, known) if rest else Preview()
        return Preview(found.groups, {**found.faults, **changing}, found.columns)

    def _build(self, letters: LetterGroup, target: TopicTarget, known: KnownColumns | None) -> Preview:
        # No types are noted for a replay: those of its first records need not be those of all.
        encoding, slice = target.encoding.with_input_types(()), letters.slice
        builder = encoding.row_builder(slice.topic, slice.generation, known, self.access)
        mark = self.settings.name_mark(encoding.layout)
        room = room_for_folder(target.destination.prefix, encoding.layout, slice.topic, encoding.extension, mark)
        pipeline = RecordPipeline(encoding, slice, builder, room)
        groups: dict[int, Group] = {}
        faults: dict[int, Fault] = {}
        for prepared in in_parts(letters.batch(), pipeline.prepare):
            if prepared is None:
                continue
            offsets = prepared.offsets.to_pylist()
            faults |= dict.fromkeys(prepared.filtered.to_pylist(), FILTERED)
            bad = {offsets[record.row]: Fault(record.reason, record.message) for record in prepared.bad}
            codes = prepared.groups.codes.to_pylist() if prepared.groups else []
            names = [prepared.groups.keys[code] for code in codes] if prepared.groups else [()] * len(offsets)
            faults |= bad
            groups |= {offset: name for offset, name in zip(offsets, names, strict=True) if offset not in bad}
        left_out = {letter.offset for letter in letters.letters} - set(groups) - set(faults)
        return Preview(groups, {**faults, **dict.fromkeys(left_out, LEFT_OUT)}, builder.schema)


def _changed(known: KnownColumns | None, now: KnownColumns | None) -> str:
    return "" if now is None else changed_column(known or NO_COLUMNS, now)
