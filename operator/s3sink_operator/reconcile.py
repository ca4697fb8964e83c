"""One look at one sink: see, decide, act."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from s3sink_operator.act import carry_out, write_status
from s3sink_operator.api import Api, ApiError
from s3sink_operator.decide import confess, decide
from s3sink_operator.facts import child_from
from s3sink_operator.logs import log
from s3sink_operator.metrics import Metrics
from s3sink_operator.model import Child, Decision, Key, Observed
from s3sink_operator.poll import Poller
from s3sink_operator.restraint import Disputes, Rollout
from s3sink_operator.settings import Settings
from s3sink_operator.store import SINK, Store

REFUSED_AGAIN = 30.0
"""Seconds until something that the API server refused is tried again, at the latest."""
SAID_AFTER = 3
"""Failures in a row, of the kind that passes by itself, after which the status tells of them."""
DISPUTED_AGAIN = 60.0
"""Seconds until an object that somebody else keeps changing is looked at again."""


@dataclass
class Reconciler:
    """One thread at a time for each sink."""

    api: Api
    store: Store
    poller: Poller
    settings: Settings
    metrics: Metrics
    _refused: dict[Key, str] = field(default_factory=dict)
    _failures: dict[Key, int] = field(default_factory=dict)
    _written: dict[Key, datetime] = field(default_factory=dict)
    _disputes: Disputes = field(default_factory=Disputes)
    _rollout: Rollout = field(init=False)

    def __post_init__(self) -> None:
        self._rollout = Rollout(self.settings.rolling)

    def reconcile(self, key: Key) -> float | None:
        """Seconds until the next look, if that is needed before anything is heard."""
        with self.metrics.seconds.time():
            try:
                outcome, again = self._reconcile(key)
            except Exception as error:
                self.metrics.reconciles.labels("error").inc()
                if not isinstance(error, ApiError):
                    self._confess(key, error)
                raise
        self.metrics.reconciles.labels(outcome).inc()
        return again

    def _reconcile(self, key: Key) -> tuple[str, float | None]:
        observed = self._observe(key)
        if observed is None or observed.resource.deleting:
            self._forget(key)
            return "gone", None
        decision, refused = self._decide(observed), ""
        try:
            if strangers := self._strangers(key, decision):
                observed = replace(observed, children=(*observed.children, *strangers))
                decision = self._decide(observed)
            decision = self._undisputed(key, decision)
            self._carry_out(observed, decision)
            self._failures.pop(key, None)
        except ApiError as error:
            refused = self._refusal(key, error)
        if refused != observed.refused:
            self._refused[key] = refused
            decision = decide(replace(observed, refused=refused), self._settings(), hold_rolls=True)
        self._write(observed, decision)
        if refused:
            return "refused", min(REFUSED_AGAIN, 2.0 ** min(self._failures[key], 10))
        return "ok", decision.look_again

    def _confess(self, key: Key, error: Exception) -> None:
        """A mistake of the operator's own shows where people look."""
        seen = self.store.see(key)
        if seen is None:
            return
        status = confess(seen.resource, error, datetime.now(UTC))
        if status != seen.resource.status:
            self.metrics.writes.labels("status").inc()
            self.store.put(SINK, self.api.replace_status(SINK, key.namespace, key.name, status))

    def _observe(self, key: Key) -> Observed | None:
        seen, heard = self.store.see(key), self.poller.heard(key)
        if seen is None:
            return None
        return Observed(
            *(seen.resource, seen.children, seen.pods, datetime.now(UTC)),
            report=heard.report,
            report_problem=heard.problem,
            written=self._written.get(key),
            refused=self._refused.get(key, ""),
        )

    def _settings(self) -> Settings:
        return replace(self.settings, stale_after=self.poller.stale_after())

    def _decide(self, observed: Observed) -> Decision:
        key = observed.resource.key
        decision = decide(observed, self._settings())
        if decision.rolls:
            if not self._rollout.admits(key):
                held = decide(observed, self._settings(), hold_rolls=True)
                patience = self._rollout.patience
                return replace(held, look_again=min(held.look_again or patience, patience))
            log.info("rolling", extra={"fields": {"sink": str(key)}})
        elif decision.settled:
            self._rollout.over(key)
        return decision

    def _strangers(self, key: Key, decision: Decision) -> tuple[Child, ...]:
        """What is in the way of new objects, and the watches do not show since it does not have our labels."""
        names = ((document["kind"], document["metadata"]["name"]) for document in decision.apply)
        unseen = [(kind, name) for kind, name in names if not self.store.holds(kind, key.namespace, name)]
        found = ((kind, self.api.get(kind, key.namespace, name)) for kind, name in unseen)
        return tuple(child_from(kind, document) for kind, document in found if document is not None)

    def _undisputed(self, key: Key, decision: Decision) -> Decision:
        apply = tuple(document for document in decision.apply if self._disputes.admits(key, document))
        if len(apply) == len(decision.apply):
            return decision
        left = [f"{d['kind']} {d['metadata']['name']}" for d in decision.apply if d not in apply]
        log.warning("somebody else changes it again and again", extra={"fields": {"sink": str(key), "objects": left}})
        return replace(decision, apply=apply, look_again=DISPUTED_AGAIN)

    def _carry_out(self, observed: Observed, decision: Decision) -> None:
        if decision.apply or decision.delete:
            self.metrics.writes.labels("child").inc(len(decision.apply) + len(decision.delete))
            carry_out(self.api, self.store, observed.resource, decision)
            for document in decision.apply:
                self._disputes.applied(observed.resource.key, document)

    def _refusal(self, key: Key, error: ApiError) -> str:
        """What was refused for good, or again and again: a sink must not be stuck without a word."""
        if error.namespace_goes:
            return ""
        count = self._failures[key] = self._failures.get(key, 0) + 1
        if not error.final and (error.status == 0 or count < SAID_AFTER):
            raise error
        log.warning("refused", extra={"fields": {"sink": str(key), "error": str(error)}})
        return str(error)

    def _write(self, observed: Observed, decision: Decision) -> None:
        if decision.status is None:
            return
        key = observed.resource.key
        self.metrics.writes.labels("status").inc()
        try:
            write_status(self.api, self.store, observed.resource, decision)
        except ApiError as error:
            if error.status != 404:
                raise
            self.store.lose(SINK, key, key.name)
        self._written[key] = observed.now

    def _forget(self, key: Key) -> None:
        self._disputes.over(key)
        self._rollout.over(key)
        self._refused.pop(key, None)
        self._failures.pop(key, None)
        self._written.pop(key, None)
