"""One sink: observe, decide, act."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from s3sink_operator.act.revert_backoff import RevertBackoff
from s3sink_operator.act.rollout import Rollout
from s3sink_operator.act.writes import write_children, write_status
from s3sink_operator.decide import decide, operator_error_status
from s3sink_operator.logs import log
from s3sink_operator.metrics import Metrics
from s3sink_operator.observe.api_client import ApiClient, ApiError
from s3sink_operator.observe.driver_polling import DriverPoller
from s3sink_operator.observe.object_cache import SINK, ObjectCache
from s3sink_operator.observe.parse_objects import parse_child
from s3sink_operator.settings import Settings
from s3sink_operator.values.decision import Decision
from s3sink_operator.values.objects import Child, SinkKey
from s3sink_operator.values.observation import Observation

LONGEST_RETRY = 30.0
"""Seconds until a write that the API server refused is retried, at the latest."""
REPORTED_AFTER = 3
"""Failed writes in a row, of the kind that passes by itself, after which the status reports them."""
REVERTED_RETRY = 60.0
"""Seconds until the next attempt at an object that another controller keeps reverting."""


@dataclass
class Reconciler:
    """One thread at a time for each sink."""

    api: ApiClient
    cache: ObjectCache
    poller: DriverPoller
    settings: Settings
    metrics: Metrics
    _refused: dict[SinkKey, str] = field(default_factory=dict)
    _failures: dict[SinkKey, int] = field(default_factory=dict)
    _written: dict[SinkKey, datetime] = field(default_factory=dict)
    _revert_backoff: RevertBackoff = field(default_factory=RevertBackoff)
    _rollout: Rollout = field(init=False)

    def __post_init__(self) -> None:
        self._rollout = Rollout(self.settings.rolling)

    def reconcile(self, key: SinkKey) -> float | None:
        """Seconds until the next reconciliation, if one is needed without any change."""
        with self.metrics.seconds.time():
            try:
                outcome, again = self._reconcile(key)
            except Exception as error:
                self.metrics.reconciles.labels("error").inc()
                if not isinstance(error, ApiError):
                    self._report_operator_error(key, error)
                raise
        self.metrics.reconciles.labels(outcome).inc()
        return again

    def _reconcile(self, key: SinkKey) -> tuple[str, float | None]:
        observation = self._observe(key)
        if observation is None or observation.resource.deleting:
            self._forget(key)
            return "gone", None
        decision, refused = self._decide(observation), ""
        try:
            if unlabelled := self._unlabelled_objects(key, decision):
                observation = replace(observation, children=(*observation.children, *unlabelled))
                decision = self._decide(observation)
            decision = self._without_reverted(key, decision)
            self._write_children(observation, decision)
            self._failures.pop(key, None)
        except ApiError as error:
            refused = self._refusal(key, error)
        if refused != observation.refused:
            self._refused[key] = refused
            decision = decide(replace(observation, refused=refused), self._settings(), hold_rollout=True)
        self._write_status(observation, decision)
        if refused:
            return "refused", min(LONGEST_RETRY, 2.0 ** min(self._failures[key], 10))
        return "ok", decision.requeue_after

    def _observe(self, key: SinkKey) -> Observation | None:
        cached, polled = self.cache.read(key), self.poller.last_result(key)
        if cached is None:
            return None
        return Observation(
            *(cached.resource, cached.children, cached.pods, datetime.now(UTC)),
            report=polled.report,
            report_problem=polled.problem,
            written=self._written.get(key),
            refused=self._refused.get(key, ""),
        )

    def _settings(self) -> Settings:
        return replace(self.settings, stale_after=self.poller.stale_after())

    def _decide(self, observation: Observation) -> Decision:
        key = observation.resource.key
        decision = decide(observation, self._settings())
        if decision.rollout:
            if not self._rollout.may_restart(key):
                held = decide(observation, self._settings(), hold_rollout=True)
                retry = self._rollout.retry_after
                return replace(held, requeue_after=min(held.requeue_after or retry, retry))
            log.info("restarting a driver for the rollout of the operator", extra={"fields": {"sink": str(key)}})
        elif decision.settled:
            self._rollout.finished(key)
        return decision

    def _unlabelled_objects(self, key: SinkKey, decision: Decision) -> tuple[Child, ...]:
        """Objects of other owners with the names of ours: without our label no watch shows them."""
        names = ((document["kind"], document["metadata"]["name"]) for document in decision.apply)
        unknown = [(kind, name) for kind, name in names if not self.cache.contains(kind, key.namespace, name)]
        found = ((kind, self.api.get(kind, key.namespace, name)) for kind, name in unknown)
        return tuple(parse_child(kind, document) for kind, document in found if document is not None)

    def _without_reverted(self, key: SinkKey, decision: Decision) -> Decision:
        apply = tuple(document for document in decision.apply if self._revert_backoff.allows(key, document))
        if len(apply) == len(decision.apply):
            return decision
        left = [f"{d['kind']} {d['metadata']['name']}" for d in decision.apply if d not in apply]
        fields = {"sink": str(key), "objects": left, "retry_in": REVERTED_RETRY}
        log.warning("another controller keeps reverting this object; backing off", extra={"fields": fields})
        return replace(decision, apply=apply, requeue_after=REVERTED_RETRY)

    def _write_children(self, observation: Observation, decision: Decision) -> None:
        if decision.apply or decision.delete:
            self.metrics.writes.labels("child").inc(len(decision.apply) + len(decision.delete))
            write_children(self.api, self.cache, observation.resource, decision)
            for document in decision.apply:
                self._revert_backoff.applied(observation.resource.key, document)

    def _refusal(self, key: SinkKey, error: ApiError) -> str:
        """What the status shall report: a final refusal, or one that keeps coming back. Raises others."""
        if error.namespace_terminating:
            return ""
        count = self._failures[key] = self._failures.get(key, 0) + 1
        if not error.final and (error.status == 0 or count < REPORTED_AFTER):
            raise error
        fields = {"sink": str(key), "error": str(error)}
        log.warning("the API server refused an object; retrying", extra={"fields": fields})
        return str(error)

    def _write_status(self, observation: Observation, decision: Decision) -> None:
        if decision.status is None:
            return
        key = observation.resource.key
        self.metrics.writes.labels("status").inc()
        try:
            write_status(self.api, self.cache, observation.resource, decision.status, decision.events)
        except ApiError as error:
            if error.status != 404:
                raise
            self.cache.forget(SINK, key, key.name)
        self._written[key] = observation.now

    def _report_operator_error(self, key: SinkKey, error: Exception) -> None:
        """Shows an error of the operator in the status of the sink."""
        cached = self.cache.read(key)
        if cached is None:
            return
        status = operator_error_status(cached.resource, error, datetime.now(UTC))
        if status != cached.resource.status:
            self.metrics.writes.labels("status").inc()
            write_status(self.api, self.cache, cached.resource, status)

    def _forget(self, key: SinkKey) -> None:
        self._revert_backoff.forget(key)
        self._rollout.finished(key)
        self._refused.pop(key, None)
        self._failures.pop(key, None)
        self._written.pop(key, None)
