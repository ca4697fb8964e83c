"""Rules for routes. What a route inherits must fit what it sets: the sections are merged and judged like any other.

CEL cannot merge sections. So it has the rules of a format once more here, for a route `r`.
"""

from __future__ import annotations

from typing import cast

from s3sink_api.cel import Rule, is_in, is_not_in, listed, ratcheted
from s3sink_api.formats import CODECS
from s3sink_api.spec import cross_checks
from s3sink_api.spec.cross_checks import NAMED_BY_RECORD, ONE_RECORD_FORMATS, SHOWN_AT_ONCE, Check
from s3sink_api.spec.destination import overlap
from s3sink_api.spec.field_errors import Refusal, alternatives
from s3sink_api.spec.format import (
    FLATTEN_MESSAGE,
    NO_ENVELOPE_MESSAGE,
    NO_META_COLUMNS_MESSAGE,
    OPTION_SECTIONS,
    WITH_FLATTEN,
    WITHOUT_COLUMNS,
    WITHOUT_ENVELOPE,
    WITHOUT_LEVELS,
    options_are_default,
)
from s3sink_api.spec.routes import Route, Sections

Routes = tuple[Route, ...]


def _no_topic_twice(routes: Routes, _: Sections) -> None:
    """Not in CEL: see `not_in_cel.py`."""
    taken: dict[str, int] = {}
    for index, route in enumerate(routes):
        for place, topic in enumerate(route.topics):
            if taken.setdefault(topic, index) != index:
                message = f"{topic} is already in routes[{taken[topic]}]; name each topic once"
                raise Refusal(message, at=(index, "topics", place), show=False)


def _topics_of_source(routes: Routes, sections: Sections) -> None:
    """Not in CEL: see `not_in_cel.py`."""
    source = sections.get("source")
    if source is None or not source.topics:
        return
    known = frozenset(source.topics)
    for index, route in enumerate(routes):
        for place, topic in enumerate(route.topics):
            if topic not in known:
                message = f"{topic} is not among spec.source.topics"
                raise Refusal(message, at=(index, "topics", place), show=False)


def _of_routes(holds: str, message: str) -> Rule:
    return Rule(f"!has(self.routes) || self.routes.all(r, {holds})", message, at=".routes")


def _apart_from_state(routes: Routes, sections: Sections) -> None:
    """In words for a route: it has no statePrefix of its own that could be changed instead."""
    if not (destination := sections.get("destination")):
        return
    state = destination.state_prefix
    for index, route in enumerate(routes):
        prefix: str | None = getattr(route.destination, "prefix", None)
        if prefix and overlap(prefix, state):
            message = f'must not overlap with statePrefix "{state}", which holds the state, got "{prefix}"'
            raise Refusal(message, at=(index, "destination", "prefix"), show=False)


_HAS_PREFIX = "has(r.destination) && has(r.destination.prefix)"
_STATE, _DATA = "self.destination.statePrefix + '/'", "r.destination.prefix + '/'"
_APART_FROM_STATE_CEL = _of_routes(
    f"!({_HAS_PREFIX}) || r.destination.prefix == ''"
    f" || !(({_DATA}).startsWith({_STATE}) || ({_STATE}).startsWith({_DATA}))",
    "destination.prefix: must not overlap with statePrefix, which holds the state",
)


def _merged_sections_fit(routes: Routes, sections: Sections) -> None:
    for index, route in enumerate(routes):
        try:
            merged = route.over(sections)
            _check_together(merged, cast(Sections, {**sections, **merged}))
        except Refusal as refusal:
            raise refusal.below(index) from None


def _check_together(merged: dict[str, object], sections: Sections) -> None:
    for name, section in merged.items():
        for check in cross_checks.CHECKS.get(name, ()):
            try:
                check(section, sections)
            except Refusal as refusal:
                raise refusal.below(name) from None


CHECKS: tuple[Check, ...] = (_no_topic_twice, _topics_of_source, _apart_from_state, _merged_sections_fit)

# Values of a route: its own, or those that it inherits.
_KIND = "(has(r.format.type) ? r.format.type : self.format.type)"
_KIND_OF_ROUTE = "(has(r.format) && has(r.format.type) ? r.format.type : self.format.type)"
_NAMES_OF_ROUTE = "(has(r.layout) && has(r.layout.objectName) ? r.layout.objectName : self.layout.objectName)"
_HAS_LEVEL = (
    "!has(r.format.compression) && has(self.format.compression) && has(self.format.compression.level)"
    " || has(r.format.compression) && has(r.format.compression.level)"
)


def _inherited(section: str, field: str) -> str:
    own = f"r.format.{section}.{field}"
    return f"(has(r.format.{section}) && has({own}) ? {own} : self.format.{section}.{field})"


_META, _FLAT = _inherited("columns", "meta"), _inherited("columns", "flatten")
_WRAPPED = _inherited("envelope", "enabled")


def _codec_fits(codecs: tuple[str, ...]) -> str:
    return (
        f"(has(r.format.compression) ? r.format.compression.codec in {listed(codecs)}"
        f" : !has(self.format.compression) || self.format.compression.codec in {listed(codecs)})"
    )


_FORMAT_CEL = (
    *(
        _of_routes(
            f"!has(r.format) || {_KIND} != '{kind}' || {_codec_fits(codecs)}",
            f"format.compression.codec: {kind} supports {', '.join(codecs)}; the route sets or inherits another",
        )
        for kind, codecs in CODECS.items()
    ),
    _of_routes(
        f"!has(r.format) || {is_not_in(_KIND, WITHOUT_LEVELS)} || !({_HAS_LEVEL})",
        f"format.compression.level: must be left out, since {alternatives(WITHOUT_LEVELS, 'and')} has no levels;"
        " the route sets or inherits one",
    ),
    *(
        _of_routes(
            f"!has(r.format) || {_KIND} == '{kind}' || !has(r.format.{section})"
            f" || {options_are_default(section, 'r.format')}",
            f"format.{section}: is only for format.type {kind}",
        )
        for section, kind in OPTION_SECTIONS.items()
    ),
    _of_routes(
        f"!has(r.format) || {is_not_in(_KIND, WITHOUT_COLUMNS)} || {_META} == 'None'",
        f"format.columns.meta: {NO_META_COLUMNS_MESSAGE}",
    ),
    _of_routes(
        f"!has(r.format) || !{_FLAT} || {is_in(_META, WITH_FLATTEN)}", f"format.columns.flatten: {FLATTEN_MESSAGE}"
    ),
    _of_routes(
        f"!has(r.format) || !{_WRAPPED} || {is_not_in(_KIND, WITHOUT_ENVELOPE)}",
        f"format.envelope.enabled: {NO_ENVELOPE_MESSAGE}",
    ),
    _of_routes(
        f"!has(r.format) || !{_WRAPPED} || {_META} == 'None'",
        "format.envelope.enabled: must be false if columns.meta is set; keep one of them",
    ),
    _of_routes(
        f"!has(r.format) || !{_WRAPPED} || "
        + " || ".join(_inherited("envelope", part) for part in ("key", "value", "headers", "metadata")),
        "format.envelope.value: must include at least one of key, value, headers and metadata",
    ),
)
_OBJECT_NAME_CEL = _of_routes(
    f"{is_not_in(_KIND_OF_ROUTE, ONE_RECORD_FORMATS)} || {_NAMES_OF_ROUTE} != 'Upload'",
    f"layout.objectName: must not be Upload, {NAMED_BY_RECORD}",
)
_FULL_REFRESH_CEL = _of_routes(
    f"self.mode != 'FullRefresh' || {is_not_in(_KIND_OF_ROUTE, ONE_RECORD_FORMATS)}", f"format.type: {SHOWN_AT_ONCE}"
)
_TOPICS_BESIDE_STATE_CEL = Rule(
    "!has(self.routes) || !has(self.source.topics)"
    " || !(self.destination.statePrefix.split('/')[0] in self.source.topics)"
    f" || self.routes.all(r, !({_HAS_PREFIX}) || r.destination.prefix != '')",
    "destination.prefix: must not be empty, since a topic would share its folder with statePrefix",
    at=".routes",
)
CEL: tuple[Rule, ...] = (
    *map(ratcheted, (*_FORMAT_CEL, _APART_FROM_STATE_CEL, _OBJECT_NAME_CEL, _FULL_REFRESH_CEL)),
    _TOPICS_BESIDE_STATE_CEL,
)
