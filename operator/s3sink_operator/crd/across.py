"""What the sections of a spec mean together, and what may change of it."""

from __future__ import annotations

from s3sink_job.spec import CODECS, Csv, Parquet
from s3sink_job.spec.format import FLATTEN_OF_WHAT, WITHOUT_COLUMNS, WITHOUT_ENVELOPE
from s3sink_operator.crd.checks import Reason, Rule, listed, rule, says_nothing

VALUES_ALONE = f"must be None, since {' and '.join(WITHOUT_COLUMNS)} write values alone; use Json"

NO_ENVELOPE = f"must be false, since {', '.join(WITHOUT_ENVELOPE)} hold no envelope; use Json, Parquet, Avro or Orc"

# Of a route; what it leaves out it inherits.
_KIND = "(has(r.format.type) ? r.format.type : self.format.type)"
_META = "(has(r.format.columns) && has(r.format.columns.meta) ? r.format.columns.meta : self.format.columns.meta)"
_FLAT = (
    "(has(r.format.columns) && has(r.format.columns.flatten) ? r.format.columns.flatten : self.format.columns.flatten)"
)


def _part(name: str) -> str:
    """Of the envelope."""
    own = f"r.format.envelope.{name}"
    return f"(has(r.format.envelope) && has({own}) ? {own} : self.format.envelope.{name})"


_KIND_OF_ROUTE = "(has(r.format) && has(r.format.type) ? r.format.type : self.format.type)"
_NAMES_OF_ROUTE = "(has(r.layout) && has(r.layout.objectName) ? r.layout.objectName : self.layout.objectName)"
_BY_CLOCK = "i.type == 'Time' && has(i.source) && i.source == 'Wallclock'"
_WITHOUT_FIELDS = "['String', 'Bytes']"
# Both ways to say where a field is: in the key, and in the value.
_HAS_FIELDS = (
    f"!has(i.path) || !((i.type == 'Key' ? self.source.key.format : self.source.value.format) in {_WITHOUT_FIELDS})"
)
_FIELDS_OF_WHAT = "path needs fields, and text and bytes have none; use format Json"
_INHERITS_LEVEL = (
    "!has(r.format.compression) && has(self.format.compression) && has(self.format.compression.level)"
    " || has(r.format.compression) && has(r.format.compression.level)"
)


_PREFIX_OF_ROUTE = "has(r.destination) && has(r.destination.prefix)"
_STATE, _DATA = "self.destination.statePrefix + '/'", "r.destination.prefix + '/'"


def _of_routes(holds: str, message: str, at: str = ".routes", reason: Reason = "FieldValueInvalid") -> Rule:
    return rule(f"!has(self.routes) || self.routes.all(r, {holds})", message, at=at, reason=reason)


def _codecs_of_routes() -> list[Rule]:
    rules = []
    for kind, codecs in CODECS.items():
        fits = (
            f"(has(r.format.compression) ? r.format.compression.codec in {listed(codecs)}"
            f" : !has(self.format.compression) || self.format.compression.codec in {listed(codecs)})"
        )
        message = f"format.compression.codec: {kind} takes {', '.join(codecs)}, be it the route's own or inherited"
        rules.append(_of_routes(f"!has(r.format) || {_KIND} != '{kind}' || {fits}", message))
    return rules


def _options_of_routes(options: Csv | Parquet) -> Rule:
    kind = type(options).__name__
    section = kind.lower()
    return _of_routes(
        f"!has(r.format) || {_KIND} == '{kind}' || !has(r.format.{section}) || {says_nothing(options, 'r.format')}",
        f"format.{section}: is only for format.type {kind}",
    )


_MEANT_TOGETHER = [
    rule(
        "self.run != 'Scheduled' || has(self.schedule)",
        'must be set, since run is Scheduled, such as "0 * * * *"',
        at=".schedule",
        reason="FieldValueRequired",
    ),
    rule(
        "self.run == 'Scheduled' || !has(self.schedule)",
        "is only for run: Scheduled",
        at=".schedule",
        reason="FieldValueForbidden",
    ),
    rule(
        "self.mode != 'FullRefresh' || self.run != 'Continuous'",
        "FullRefresh needs run: Once or Scheduled",
        at=".mode",
    ),
    rule(
        "self.layout.onMissingValue != 'DeadLetter' || has(self.errors.deadLetter)",
        "must be set, since layout.onMissingValue is DeadLetter",
        at=".errors.deadLetter",
        reason="FieldValueRequired",
    ),
    _of_routes(
        "!has(r.layout) || !has(r.layout.onMissingValue) || r.layout.onMissingValue != 'DeadLetter'"
        " || has(self.errors.deadLetter)",
        "must be set, since a route's layout.onMissingValue is DeadLetter",
        at=".errors.deadLetter",
        reason="FieldValueRequired",
    ),
    *_codecs_of_routes(),
    _of_routes(
        f"!has(r.format) || {_KIND} != 'Orc' || !({_INHERITS_LEVEL})",
        "format.compression.level: must be left out, since Orc has no levels, be it the route's own or inherited",
    ),
    _options_of_routes(Csv()),
    _options_of_routes(Parquet()),
    _of_routes(
        f"!has(r.format) || !({_KIND} in {listed(WITHOUT_COLUMNS)}) || {_META} == 'None'",
        f"format.columns.meta: {VALUES_ALONE}",
    ),
    _of_routes(
        f"!has(r.format) || !{_FLAT} || {_META} == 'Airbyte'",
        f"format.columns.flatten: {FLATTEN_OF_WHAT}",
    ),
    _of_routes(
        f"!has(r.format) || !{_part('enabled')} || !({_KIND} in {listed(WITHOUT_ENVELOPE)})",
        f"format.envelope.enabled: {NO_ENVELOPE}",
    ),
    _of_routes(
        f"!has(r.format) || !{_part('enabled')} || {_META} == 'None'",
        "format.envelope.enabled: must be false beside columns.meta; keep one of them",
    ),
    _of_routes(
        f"!has(r.format) || !{_part('enabled')} || "
        + " || ".join(_part(name) for name in ("key", "value", "headers", "metadata")),
        "format.envelope.value: must keep one of key, value, headers and metadata",
    ),
    _of_routes(
        f"!({_PREFIX_OF_ROUTE}) || r.destination.prefix == ''"
        f" || !(({_DATA}).startsWith({_STATE}) || ({_STATE}).startsWith({_DATA}))",
        "destination.prefix: must lie apart from statePrefix, which belongs to the sink",
    ),
    rule(
        "self.format.type != 'Bytes' || self.layout.objectName != 'Upload'",
        "must not be Upload, since Bytes names each object by its record",
        at=".layout.objectName",
    ),
    _of_routes(
        f"{_KIND_OF_ROUTE} != 'Bytes' || {_NAMES_OF_ROUTE} != 'Upload'",
        "layout.objectName: must not be Upload, since Bytes names each object by its record",
    ),
]


def _ratcheted(stated: Rule) -> Rule:
    """A mistake that was stored under an older definition does not stand in the way of other changes.

    The API server sees to that by itself for what did not change; but the whole spec changes with any field of it.
    """
    expression = stated["rule"]
    before = expression.replace("self.", "o.")
    return stated | {
        "rule": f"({expression}) || oldSelf.optMap(o, !({before})).orValue(false)",
        "optionalOldSelf": True,
    }


def _same(field: str) -> str:
    new, old = (
        f"(has({whose}.{field}) ? {whose}.{field} : '')" for whose in ("self.destination", "oldSelf.destination")
    )
    return f"{new} == {old}"


def _stays(field: str, what: str) -> Rule:
    return rule(
        f"{_same(field)} || (has(self.reset) && (!has(oldSelf.reset) || self.reset.nonce != oldSelf.reset.nonce))",
        f"must stay, since {what} lies there, unless reset.nonce changes with it",
        at=f".destination.{field}",
        reason="FieldValueForbidden",
    )


ACROSS: list[Rule] = [
    *map(_ratcheted, _MEANT_TOGETHER),
    # Too costly to judge twice: of the old list the API server does not know how long it may be.
    rule(
        f"self.format.type != 'Bytes' || !self.layout.partitionBy.exists(i, {_BY_CLOCK})",
        "source must not be Wallclock, since Bytes names each object by its record",
        at=".layout.partitionBy",
    ),
    rule(f"self.layout.partitionBy.all(i, {_HAS_FIELDS})", _FIELDS_OF_WHAT, at=".layout.partitionBy"),
    rule(
        "(has(self.destination.prefix) && self.destination.prefix != '') || !has(self.source.topics)"
        " || !(self.destination.statePrefix.split('/')[0] in self.source.topics)",
        "must be set, since a topic would share its folder with statePrefix",
        at=".destination.prefix",
        reason="FieldValueRequired",
    ),
    rule(
        "!has(self.routes) || !has(self.source.topics)"
        " || !(self.destination.statePrefix.split('/')[0] in self.source.topics)"
        f" || self.routes.all(r, !({_PREFIX_OF_ROUTE}) || r.destination.prefix != '')",
        "destination.prefix: must not be empty, since a topic would share its folder with statePrefix",
        at=".routes",
    ),
    _stays("bucket", "what was written"),
    _stays("prefix", "what was written"),
    _stays("statePrefix", "the sink's state"),
    rule(
        f"{_same('statePrefix')} || !({_same('bucket')} && {_same('prefix')})",
        "must not change alone: without its state the sink would want names that are taken; change prefix, too",
        at=".destination.statePrefix",
        reason="FieldValueForbidden",
    ),
]
