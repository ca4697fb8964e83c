"""What the sections of a spec mean together, and what may change of it."""

from __future__ import annotations

from s3sink_job.spec import CODECS
from s3sink_job.spec.format import WITHOUT_COLUMNS
from s3sink_operator.crd.checks import Reason, Rule, listed, rule

VALUES_ALONE = f"must be None, since {' and '.join(WITHOUT_COLUMNS)} write values alone; use Json"

# Of a route; what it leaves out it inherits.
_KIND = "(has(r.format.type) ? r.format.type : self.format.type)"
_META = "(has(r.format.columns) && has(r.format.columns.meta) ? r.format.columns.meta : self.format.columns.meta)"
_INHERITS_LEVEL = (
    "!has(r.format.compression) && has(self.format.compression) && has(self.format.compression.level)"
    " || has(r.format.compression) && has(r.format.compression.level)"
)


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
    _of_routes(
        f"!has(r.format) || !({_KIND} in {listed(WITHOUT_COLUMNS)}) || {_META} == 'None'",
        f"format.columns.meta: {VALUES_ALONE}",
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


def _stays(field: str, what: str) -> Rule:
    new, old = (
        f"(has({whose}.{field}) ? {whose}.{field} : '')" for whose in ("self.destination", "oldSelf.destination")
    )
    return rule(
        f"{new} == {old} || (has(self.reset) && (!has(oldSelf.reset) || self.reset.nonce != oldSelf.reset.nonce))",
        f"must stay, since {what} lies there; a new spec.reset.nonce starts afresh elsewhere",
        at=f".destination.{field}",
        reason="FieldValueForbidden",
    )


ACROSS: list[Rule] = [
    *map(_ratcheted, _MEANT_TOGETHER),
    # Too costly to judge twice.
    rule(
        "(has(self.destination.prefix) && self.destination.prefix != '') || !has(self.source.topics)"
        " || !(self.destination.statePrefix.split('/')[0] in self.source.topics)",
        "must be set, since a topic would share its folder with statePrefix",
        at=".destination.prefix",
        reason="FieldValueRequired",
    ),
    _stays("bucket", "what was written"),
    _stays("prefix", "what was written"),
    _stays("statePrefix", "the sink's state"),
]
