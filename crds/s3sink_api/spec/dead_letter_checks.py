"""Rules for dead letters: each as a check of the parser, followed by its CEL."""

from __future__ import annotations

from typing import Any

from s3sink_api.cel import Rule, required
from s3sink_api.spec.destination import overlap
from s3sink_api.spec.errors import Errors
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.routes import Sections

_LETTER_TOPIC, _LETTER_PREFIX = ("deadLetter", "topic"), ("deadLetter", "prefix")
_OWN_TOPIC = "must not be one of spec.source.topics: the sink would read its own dead letters"
_TOPICS_FOLDER = "must not begin with a topic's name, since destination.prefix is empty"


def _dead_letters_for_missing_values(errors: Errors, sections: Sections) -> None:
    layouts: list[tuple[str, Any]] = [("", sections.get("layout"))]
    layouts += [(f"routes[{index}].", route.layout) for index, route in enumerate(sections.get("routes", ()))]
    for where, layout in layouts:
        if layout is not None and layout.on_missing_value == "DeadLetter" and errors.dead_letter is None:
            message = f"must be set, since {where}layout.onMissingValue is DeadLetter"
            raise Refusal(message, at=("deadLetter",), show=False)


MISSING_VALUES_CEL = (
    required(
        "self.layout.onMissingValue != 'DeadLetter' || has(self.errors.deadLetter)",
        "must be set, since layout.onMissingValue is DeadLetter",
        at=".errors.deadLetter",
    ),
    required(
        "!has(self.routes) || self.routes.all(r, !has(r.layout) || !has(r.layout.onMissingValue)"
        " || r.layout.onMissingValue != 'DeadLetter' || has(self.errors.deadLetter))",
        "must be set, since a route's layout.onMissingValue is DeadLetter",
        at=".errors.deadLetter",
    ),
)


def _dead_letters_beside_data(errors: Errors, sections: Sections) -> None:
    """Readers of the data must not meet dead letters, and the sink must not read its own dead letters."""
    letters, source, destination = errors.dead_letter, sections.get("source"), sections.get("destination")
    if letters is None:
        return
    if letters.topic and source and letters.topic in source.topics:
        raise Refusal(_OWN_TOPIC, at=_LETTER_TOPIC, show=False)
    if not letters.prefix or not destination:
        return
    data = [("prefix", destination.prefix), ("statePrefix", destination.state_prefix)]
    for index, route in enumerate(sections.get("routes", ())):
        own: Any = route.destination
        if own and own.prefix and own.bucket in {None, destination.bucket}:
            data.append((f"routes[{index}].destination.prefix", own.prefix))
    for name, prefix in data:
        if prefix and overlap(letters.prefix, prefix):
            raise Refusal(f'must not overlap with {name} "{prefix}"', at=_LETTER_PREFIX, show=False)
    if not destination.prefix and source and letters.prefix.split("/")[0] in source.topics:
        raise Refusal(_TOPICS_FOLDER, at=_LETTER_PREFIX, show=False)


_HAS_LETTERS = "has(self.errors.deadLetter) && has(self.errors.deadLetter.{})"


def _letters_overlap(other: str) -> str:
    letters, other = "self.errors.deadLetter.prefix + '/'", f"{other} + '/'"
    return f"(({letters}).startsWith({other}) || ({other}).startsWith({letters}))"


BESIDE_DATA_CEL: tuple[Rule, ...] = (
    Rule(
        f"!({_HAS_LETTERS.format('prefix')}) || !has(self.destination.prefix) || self.destination.prefix == ''"
        f" || !{_letters_overlap('self.destination.prefix')}",
        "must not overlap with destination.prefix",
        at=".errors.deadLetter.prefix",
    ),
    Rule(
        f"!({_HAS_LETTERS.format('prefix')}) || !{_letters_overlap('self.destination.statePrefix')}",
        "must not overlap with destination.statePrefix",
        at=".errors.deadLetter.prefix",
    ),
    Rule(
        f"!({_HAS_LETTERS.format('prefix')}) || !has(self.routes) || self.routes.all(r, !has(r.destination)"
        " || !has(r.destination.prefix) || r.destination.prefix == ''"
        " || (has(r.destination.bucket) && r.destination.bucket != self.destination.bucket)"
        f" || !{_letters_overlap('r.destination.prefix')})",
        "must not overlap with the destination.prefix of a route",
        at=".errors.deadLetter.prefix",
    ),
    Rule(
        f"!({_HAS_LETTERS.format('prefix')}) || (has(self.destination.prefix) && self.destination.prefix != '')"
        " || !has(self.source.topics) || !(self.errors.deadLetter.prefix.split('/')[0] in self.source.topics)",
        _TOPICS_FOLDER,
        at=".errors.deadLetter.prefix",
    ),
    Rule(
        f"!({_HAS_LETTERS.format('topic')}) || !has(self.source.topics)"
        " || !(self.errors.deadLetter.topic in self.source.topics)",
        _OWN_TOPIC,
        at=".errors.deadLetter.topic",
    ),
)

CHECKS = (_dead_letters_for_missing_values, _dead_letters_beside_data)
