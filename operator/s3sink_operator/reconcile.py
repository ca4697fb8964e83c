"""One look at one sink: see, decide, act."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from s3sink_operator.act import carry_out, write_status
from s3sink_operator.api import Api, ApiError
from s3sink_operator.decide import decide
from s3sink_operator.facts import child_from
from s3sink_operator.logs import log
from s3sink_operator.metrics import Metrics
from s3sink_operator.model import APPLIED, Child, Decision, Document, Key, Observed
from s3sink_operator.poll import Poller
from s3sink_operator.settings import Settings
from s3sink_operator.store import SINK, Store

REFUSED_AGAIN = 30.0
"""Seconds until something that the API server refused is tried again, at the latest."""
ASKED_AGAIN, ASKED_A_SECOND = 2.0, 30
"""Seconds until a driver that was not restarted yet may have its turn; and how many ask in a second."""
SAID_AFTER = 3
"""Failures in a row, of the kind that passes by itself, after which the status tells of them."""
MOST_APPLIED, DISPUTED_FOR, DISPUTED_AGAIN = 6, 300.0, 60.0
"""How often the same object is put right within so many seconds; and when that is looked at again."""
ROLLED_WITHIN = 600.0
"""Seconds after which a driver that was restarted for the operator's sake no longer holds up the next one."""


@dataclass
class Rollout:
    """Drivers that are restarted for the operator's sake: a few at a time, so that a bad version hits a few only."""

    most: int
    clock: Callable[[], float] = time.monotonic
    _until: dict[Key, float] = field(default_factory=dict)
    _waiting: set[Key] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, key: Key) -> bool:
        now = self.clock()
        with self._lock:
            self._until = {k: until for k, until in self._until.items() if until > now}
            if key not in self._until and len(self._until) >= self.most:
                self._waiting.add(key)
                return False
            self._waiting.discard(key)
            self._until.setdefault(key, now + ROLLED_WITHIN)
            return True

    @property
    def patience(self) -> float:
        """Seconds until one that was not admitted asks again: soon, and not all at once if there are many."""
        return max(ASKED_AGAIN, len(self._waiting) / ASKED_A_SECOND)

    def over(self, key: Key) -> None:
        """It is well again, or gone."""
        with self._lock:
            self._until.pop(key, None)
            self._waiting.discard(key)


@dataclass
class Disputes:
    """Objects that somebody else wants otherwise, such as a second operator: whoever gives in ends the fight."""

    clock: Callable[[], float] = time.monotonic
    _applied: dict[Key, dict[tuple[str, str, str], list[float]]] = field(default_factory=dict)

    def admits(self, key: Key, document: Document) -> bool:
        """Whether the very same was not applied too often lately."""
        return len(self._lately(key, document)) < MOST_APPLIED

    def applied(self, key: Key, document: Document) -> None:
        now, before = self.clock(), self._applied.get(key, {})
        kept = {version: times for version, times in before.items() if now - times[-1] < DISPUTED_FOR}
        self._applied[key] = {**kept, _version(document): [*self._lately(key, document), now]}

    def _lately(self, key: Key, document: Document) -> list[float]:
        now, times = self.clock(), self._applied.get(key, {}).get(_version(document), ())
        return [at for at in times if now - at < DISPUTED_FOR]

    def over(self, key: Key) -> None:
        self._applied.pop(key, None)


def _version(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return (document["kind"], metadata["name"], metadata["annotations"][APPLIED])


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
            except BaseException:
                self.metrics.reconciles.labels("error").inc()
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
