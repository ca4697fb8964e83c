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
from s3sink_operator.model import Child, Decision, Key, Observed
from s3sink_operator.poll import Poller
from s3sink_operator.settings import Settings
from s3sink_operator.store import SINK, Store

REFUSED_AGAIN = 30.0
"""Seconds until something that the API server refused is tried again."""
ROLLED_WITHIN = 600.0
"""Seconds after which a driver that was restarted for the operator's sake no longer holds up the next one."""


@dataclass
class Rollout:
    """Drivers that are restarted for the operator's sake: a few at a time, so that a bad version hits a few only."""

    most: int
    clock: Callable[[], float] = time.monotonic
    _until: dict[Key, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, key: Key) -> bool:
        now = self.clock()
        with self._lock:
            self._until = {k: until for k, until in self._until.items() if until > now}
            if key not in self._until and len(self._until) >= self.most:
                return False
            self._until.setdefault(key, now + ROLLED_WITHIN)
            return True

    def over(self, key: Key) -> None:
        """It is well again, or gone."""
        with self._lock:
            self._until.pop(key, None)


@dataclass
class Reconciler:
    """One thread at a time for each sink."""

    api: Api
    store: Store
    poller: Poller
    settings: Settings
    metrics: Metrics
    _refused: dict[Key, str] = field(default_factory=dict)
    _written: dict[Key, datetime] = field(default_factory=dict)
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
        decision = self._decide(observed)
        if strangers := self._strangers(key, decision):
            observed = replace(observed, children=(*observed.children, *strangers))
            decision = self._decide(observed)
        refused = self._carry_out(observed, decision)
        if refused != observed.refused:
            self._refused[key] = refused
            decision = decide(replace(observed, refused=refused), self._settings(), hold_rolls=True)
        self._write(observed, decision)
        if refused:
            return "refused", REFUSED_AGAIN
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
                return decide(observed, self._settings(), hold_rolls=True)
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

    def _carry_out(self, observed: Observed, decision: Decision) -> str:
        """What the API server refused for good; a sink must not be stuck without a word."""
        if not decision.apply and not decision.delete:
            return ""
        self.metrics.writes.labels("child").inc(len(decision.apply) + len(decision.delete))
        try:
            carry_out(self.api, self.store, observed.resource, decision)
        except ApiError as error:
            if not error.final:
                raise
            if error.namespace_goes:
                return ""
            log.warning("refused", extra={"fields": {"sink": str(observed.resource.key), "error": str(error)}})
            return str(error)
        return ""

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
        self._rollout.over(key)
        self._refused.pop(key, None)
        self._written.pop(key, None)
