"""Fields of a stored sink that change only with a reset. CEL alone: the parser never sees the version before."""

from __future__ import annotations

from s3sink_api.cel import Rule, forbidden


def _same(field: str) -> str:
    new, old = (
        f"(has({whose}.{field}) ? {whose}.{field} : '')" for whose in ("self.destination", "oldSelf.destination")
    )
    return f"{new} == {old}"


def _stays(field: str, what: str) -> Rule:
    return forbidden(
        f"{_same(field)} || (has(self.reset) && (!has(oldSelf.reset) || self.reset.nonce != oldSelf.reset.nonce))",
        f"must not change without a new reset.nonce, since {what} is stored there",
        at=f".destination.{field}",
    )


CEL: tuple[Rule, ...] = (
    _stays("bucket", "what was written"),
    _stays("prefix", "what was written"),
    _stays("statePrefix", "the sink's state"),
    forbidden(
        f"{_same('statePrefix')} || !({_same('bucket')} && {_same('prefix')})",
        "must not change alone: without its state the sink would write to existing keys; change prefix as well",
        at=".destination.statePrefix",
    ),
)
