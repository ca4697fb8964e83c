"""Rules between sections of the spec: each as a check of the parser, followed by its CEL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from s3sink_api.cel import Rule, forbidden, is_not_in, listed, ratcheted, required
from s3sink_api.formats import FORMATS, INPUT_FORMATS, formats_where, inputs_where
from s3sink_api.spec import dead_letter_checks
from s3sink_api.spec.destination import Destination
from s3sink_api.spec.field_errors import Refusal, alternatives
from s3sink_api.spec.format import Format
from s3sink_api.spec.layout import Layout
from s3sink_api.spec.partition_items import ByKey, ByTime
from s3sink_api.spec.reset import Reset
from s3sink_api.spec.routes import Sections
from s3sink_api.spec.source import check_topics
from s3sink_api.spec.transform import Transform


def _schedule(schedule: str | None, sections: Sections) -> None:
    run = sections.get("run")
    if schedule is None and run == "Scheduled":
        raise Refusal('must be set, since run is Scheduled, such as "0 * * * *"', show=False)
    if schedule is not None and run in {"Continuous", "Once"}:
        raise Refusal(f"is only for run: Scheduled, and run is {run}", show=False)


_SCHEDULE_CEL = (
    required(
        "self.run != 'Scheduled' || has(self.schedule)",
        'must be set, since run is Scheduled, such as "0 * * * *"',
        at=".schedule",
    ),
    forbidden("self.run == 'Scheduled' || !has(self.schedule)", "is only for run: Scheduled", at=".schedule"),
)


def _run(run: str, sections: Sections) -> None:
    source = sections.get("source")
    if source and source.ending_offsets is not None and run != "Once":
        at = ("..", "source", "endingOffsets")
        raise Refusal(f"is only for run: Once, and run is {run}", at=at, show=False)


_ENDING_OFFSETS_CEL = forbidden(
    "self.run == 'Once' || !has(self.source.endingOffsets)", "is only for run: Once", at=".source.endingOffsets"
)


def _mode(mode: str, sections: Sections) -> None:
    if mode == "FullRefresh" and sections.get("run") == "Continuous":
        raise Refusal("FullRefresh needs run: Once or Scheduled, and run is Continuous", show=False)


_MODE_CEL = Rule(
    "self.mode != 'FullRefresh' || self.run != 'Continuous'", "FullRefresh needs run: Once or Scheduled", at=".mode"
)


def _allow_empty(allow_empty: bool, sections: Sections) -> None:
    if allow_empty and (mode := sections.get("mode")) == "Append":
        raise Refusal(f"is only for mode: FullRefresh, and mode is {mode}", show=False)


_ALLOW_EMPTY_CEL = forbidden(
    "self.mode == 'FullRefresh' || !self.allowEmpty", "is only for mode: FullRefresh", at=".allowEmpty"
)


def _offsets_of_reset(reset: Reset | None, sections: Sections) -> None:
    """Not in CEL: see `not_in_cel.py`."""
    if reset is not None and (source := sections.get("source")):
        check_topics(reset.to, source.topics, ("to",))


def _topics_beside_state(destination: Destination, sections: Sections) -> None:
    """Without a prefix the data of a topic is in a folder with the topic's name."""
    source = sections.get("source")
    folder = destination.state_prefix.split("/")[0]
    if source and not destination.prefix and folder in source.topics:
        message = f"must not be empty, since the topic {folder} would share its folder with statePrefix"
        raise Refusal(message, at=("prefix",), show=False)


_TOPICS_BESIDE_STATE_CEL = required(
    "(has(self.destination.prefix) && self.destination.prefix != '') || !has(self.source.topics)"
    " || !(self.destination.statePrefix.split('/')[0] in self.source.topics)",
    "must not be empty, since a topic would share its folder with statePrefix",
    at=".destination.prefix",
)

_WITHOUT_FIELDS = inputs_where(lambda traits: not traits.fields)
_WITH_FIELDS = alternatives(inputs_where(lambda traits: traits.fields))


def _folders_of_fields(layout: Layout, sections: Sections) -> None:
    """A path names a field, and not every input format has fields."""
    if not (source := sections.get("source")):
        return
    for index, item in enumerate(layout.partition_by):
        part, kind = ("key", source.key.format) if isinstance(item, ByKey) else ("value", source.value.format)
        if (path := getattr(item, "path", None)) and not INPUT_FORMATS[kind].fields:
            message = f"needs fields, and source.{part}.format is {kind}; use {_WITH_FIELDS}, got {'.'.join(path)}"
            raise Refusal(message, at=("partitionBy", index, "path"), show=False)


_FOLDERS_OF_FIELDS_CEL = Rule(
    "self.layout.partitionBy.all(i, !has(i.path) || "
    + is_not_in("(i.type == 'Key' ? self.source.key.format : self.source.value.format)", _WITHOUT_FIELDS)
    + ")",
    f"path needs fields, and {alternatives(_WITHOUT_FIELDS, 'and')} have none; use format {_WITH_FIELDS}",
    at=".layout.partitionBy",
)

ONE_RECORD_FORMATS = formats_where(lambda traits: traits.one_record_objects)
NAMED_BY_RECORD = f"since {alternatives(ONE_RECORD_FORMATS, 'and')} names each object by its record"


def _names_of_one_record_objects(format: Format, sections: Sections) -> None:
    """Objects of one record are written before they are committed, so their keys must depend on the record alone."""
    layout = sections.get("layout")
    if layout is None or not FORMATS[format.type].one_record_objects:
        return
    why = f"since {format.type} names each object by its record"
    if layout.object_name == "Upload":
        raise Refusal(f"must not be Upload, {why}", at=("..", "layout", "objectName"), show=False)
    for index, item in enumerate(layout.partition_by):
        if isinstance(item, ByTime) and item.source == "Wallclock":
            at = ("..", "layout", "partitionBy", index, "source")
            raise Refusal(f"must not be Wallclock, {why}", at=at, show=False)


def _fields_of_keys(format: Format, sections: Sections) -> None:
    source = sections.get("source")
    if source is None or not format.envelope.enabled or format.envelope.key_as != "Fields":
        return
    if not INPUT_FORMATS[source.key.format].fields:
        message = f"must be Plain, since source.key.format is {source.key.format}, which has no fields"
        raise Refusal(f"{message}; use {_WITH_FIELDS}", at=("envelope", "keyAs"), show=False)
    if INPUT_FORMATS[source.key.format].typed != INPUT_FORMATS[source.value.format].typed:
        message = f"must be Plain, since of {source.key.format} and {source.value.format} only one has schemas"
        raise Refusal(message, at=("envelope", "keyAs"), show=False)


_FIELDS_OF_KEYS_CEL = Rule(
    "!self.format.envelope.enabled || self.format.envelope.keyAs != 'Fields' || "
    + is_not_in("self.source.key.format", _WITHOUT_FIELDS),
    f"must be Plain, since keys of {alternatives(_WITHOUT_FIELDS, 'and')} have no fields; use format {_WITH_FIELDS}",
    at=".format.envelope.keyAs",
)
_TYPED = listed(inputs_where(lambda traits: traits.typed))
_TYPES_OF_KEYS_CEL = Rule(
    "!self.format.envelope.enabled || self.format.envelope.keyAs != 'Fields'"
    f" || (self.source.key.format in {_TYPED}) == (self.source.value.format in {_TYPED})",
    "must be Plain, since only one of source.key.format and source.value.format has schemas",
    at=".format.envelope.keyAs",
)
_OBJECT_NAME_CEL = Rule(
    f"{is_not_in('self.format.type', ONE_RECORD_FORMATS)} || self.layout.objectName != 'Upload'",
    f"must not be Upload, {NAMED_BY_RECORD}",
    at=".layout.objectName",
)
_WALLCLOCK_CEL = Rule(
    f"{is_not_in('self.format.type', ONE_RECORD_FORMATS)}"
    " || !self.layout.partitionBy.exists(i, i.type == 'Time' && has(i.source) && i.source == 'Wallclock')",
    f"source must not be Wallclock, {NAMED_BY_RECORD}",
    at=".layout.partitionBy",
)

_VALUES_AS_THEY_ARE = formats_where(lambda traits: not traits.envelope and traits.rows != "Columns")
CHANGES_VALUES = ("unwrap", "steps", "select")
_ONLY_WHERE = f"format.type {alternatives(_VALUES_AS_THEY_ARE, 'and')} write values as they are; only where is possible"


def _changed_values(transform: Transform | None, sections: Sections) -> None:
    """A format that writes the bytes of values has no place for other fields."""
    format = sections.get("format")
    if transform is None or format is None or format.type not in _VALUES_AS_THEY_ARE:
        return
    for name in CHANGES_VALUES:
        if getattr(transform, name):
            raise Refusal(f"must be left out, since {_ONLY_WHERE}", at=(name,), show=False)


_CHANGED_VALUES_CEL = tuple(
    forbidden(
        f"{is_not_in('self.format.type', _VALUES_AS_THEY_ARE)} || !has(self.transform) || !has(self.transform.{name})",
        f"must be left out, since {_ONLY_WHERE}",
        at=f".transform.{name}",
    )
    for name in CHANGES_VALUES
)


SHOWN_AT_ONCE = (
    f"must not be {alternatives(ONE_RECORD_FORMATS)} with mode: FullRefresh, since its objects are visible before the"
    " run is complete"
)


def _full_refresh_hides_objects(format: Format, sections: Sections) -> None:
    if sections.get("mode") == "FullRefresh" and FORMATS[format.type].one_record_objects:
        raise Refusal(SHOWN_AT_ONCE, at=("type",), show=False)


_FULL_REFRESH_FORMAT_CEL = Rule(
    f"self.mode != 'FullRefresh' || {is_not_in('self.format.type', ONE_RECORD_FORMATS)}",
    SHOWN_AT_ONCE,
    at=".format.type",
)

Check = Callable[[Any, Sections], None]
CHECKS: Mapping[str, tuple[Check, ...]] = {
    "destination": (_topics_beside_state,),
    "run": (_run,),
    "schedule": (_schedule,),
    "mode": (_mode,),
    "allow_empty": (_allow_empty,),
    "reset": (_offsets_of_reset,),
    "layout": (_folders_of_fields,),
    "format": (_names_of_one_record_objects, _full_refresh_hides_objects, _fields_of_keys),
    "transform": (_changed_values,),
    "errors": dead_letter_checks.CHECKS,
}
"""By the field of the spec that is checked. The fields before it are parsed already."""
CEL: tuple[Rule, ...] = (
    *map(
        ratcheted,
        (
            *(*_SCHEDULE_CEL, _ENDING_OFFSETS_CEL, _MODE_CEL, _ALLOW_EMPTY_CEL, _FULL_REFRESH_FORMAT_CEL),
            *(*dead_letter_checks.MISSING_VALUES_CEL, _OBJECT_NAME_CEL, _FIELDS_OF_KEYS_CEL, _TYPES_OF_KEYS_CEL),
        ),
    ),
    *_CHANGED_VALUES_CEL,
    # Lists and texts are too costly to judge twice: of old ones the API server does not know how long they may be.
    _WALLCLOCK_CEL,
    _FOLDERS_OF_FIELDS_CEL,
    _TOPICS_BESIDE_STATE_CEL,
    *dead_letter_checks.BESIDE_DATA_CEL,
)
