"""One look at one sink: observe, decide, act."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from s3sink_operator.act import carry_out, write_status
from s3sink_operator.api import Api, ApiError
from s3sink_operator.decide import decide
from s3sink_operator.logs import log
from s3sink_operator.metrics import Metrics
from s3sink_operator.model import Decision, Key, Observed
from s3sink_operator.observe import Observer
from s3sink_operator.settings import Settings

REFUSED_AGAIN = 30.0
"""Seconds until something that the API server refused is tried again."""


@dataclass
class Reconciler:
    api: Api
    observer: Observer
    settings: Settings
    metrics: Metrics
    _refused: dict[Key, str] = field(default_factory=dict)

    def reconcile(self, key: Key, *, afresh: bool) -> float | None:
        """Seconds until the next look, if that is needed before the next poll."""
        with self.metrics.seconds.time():
            try:
                again = self._reconcile(key, afresh=afresh)
            except BaseException:
                self.metrics.reconciles.labels("error").inc()
                self.observer.changed(key)
                raise
        self.metrics.reconciles.labels("ok").inc()
        return again

    def _reconcile(self, key: Key, *, afresh: bool) -> float | None:
        observed = self.observer.observe(key, afresh=afresh)
        if observed is None or observed.resource.deleting:
            self.metrics.phase(key, "")
            self._refused.pop(key, None)
            return None
        observed = replace(observed, refused=self._refused.get(key, ""))
        decision = decide(observed, self.settings)
        refused = self._carry_out(observed, decision)
        again = decision.look_again
        if refused != observed.refused:
            self._refused[key] = refused
            decision = decide(replace(observed, refused=refused), self.settings)
        if refused:
            again = REFUSED_AGAIN
        self._write(observed, decision)
        self.metrics.phase(key, decision.phase)
        return again

    def _carry_out(self, observed: Observed, decision: Decision) -> str:
        """What the API server refused for good; a sink must not be stuck without a word."""
        if not decision.apply and not decision.delete:
            return ""
        self.observer.changed(observed.resource.key)
        self.metrics.writes.labels("child").inc(len(decision.apply) + len(decision.delete))
        try:
            carry_out(self.api, observed.resource, decision)
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
            write_status(self.api, observed.resource, decision)
        except ApiError as error:
            if error.status != 404:
                raise
        self.observer.changed(key)
        self.observer.wrote_status(key, observed.now)
