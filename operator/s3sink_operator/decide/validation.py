"""Whether the spec is valid, as the condition Accepted."""

from __future__ import annotations

from collections.abc import Iterable

from s3sink_api.conditions import ACCEPTED, LONGEST_MESSAGE
from s3sink_api.spec import FieldError, S3Sink, SpecError, parse, warnings_of
from s3sink_operator.decide.children.supporting_objects import manifest
from s3sink_operator.decide.children.template_rules import template_errors
from s3sink_operator.decide.conditions import Condition
from s3sink_operator.values.objects import SinkResource

_ROOM_FOR_COUNT = 64


def validate(resource: SinkResource, *, allow_unsafe_templates: bool = False) -> tuple[S3Sink | None, Condition]:
    """The parsed sink, or None, and the condition Accepted."""
    try:
        sink = parse(manifest(resource))
        errors = tuple(template_errors(sink, allow_unsafe=allow_unsafe_templates))
    except SpecError as error:
        sink, errors = None, error.errors
    if errors:
        return None, Condition(ACCEPTED, "False", "InvalidSpec", _listed(errors))
    warned = f", but {_listed(found)}" if sink is not None and (found := warnings_of(sink.spec)) else ""
    return sink, Condition(ACCEPTED, "True", "Valid", f"the spec is valid{warned}")


def _listed(errors: Iterable[FieldError]) -> str:
    """As many as there is room for, and the number of the others."""
    texts = [str(error) for error in errors]
    kept: list[str] = []
    room = LONGEST_MESSAGE - _ROOM_FOR_COUNT
    for text in texts:
        room -= len(text) + 2
        if kept and room < 0:
            break
        kept.append(text)
    more = [f"and {len(texts) - len(kept)} more"] if len(kept) < len(texts) else []
    return "; ".join([*kept, *more])
