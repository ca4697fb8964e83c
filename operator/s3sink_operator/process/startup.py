"""Starts the operator: waits for what it needs, runs it, and ends it."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from prometheus_client import CollectorRegistry

from s3sink_api.group import API_VERSION
from s3sink_operator import logs
from s3sink_operator.observe.api_client import ApiClient, ApiError
from s3sink_operator.process import malloc
from s3sink_operator.process.flags import parse_flags
from s3sink_operator.process.operator_process import OperatorProcess
from s3sink_operator.process.probe_server import serve
from s3sink_operator.process.watch_liveness import WatchLiveness
from s3sink_operator.process.watches import watch_keys

WAIT = 5.0
"""Seconds between two attempts to get what the operator needs to start."""
LAST_REQUESTS = 5.0
"""Seconds that requests under way get when the operator stops."""
T = TypeVar("T")


def main(arguments: Sequence[str] | None = None) -> int:
    flags = parse_flags(arguments)
    settings = flags.settings
    malloc.limit_arenas()
    logs.set_up()
    _raise_open_file_limit()
    registry = CollectorRegistry()
    liveness = WatchLiveness(watch_keys(settings.namespaces), settings.watch_dead_after)
    liveness.export(registry)
    # Serves probes at once: an operator that waits for the API server must not be killed.
    server = serve(flags.listen, registry, liveness)
    api = ApiClient()
    _wait_for(lambda: _definition_exists(api), liveness)
    cluster = settings.cluster or _wait_for(lambda: _cluster_id(api), liveness)
    operator = OperatorProcess(api, replace(settings, cluster=cluster), liveness, registry)
    try:
        operator.run()
        operator.finish(LAST_REQUESTS)
    finally:
        server.shutdown()
    return 1 if operator.failed else 0


def _raise_open_file_limit() -> None:
    """The operator keeps a connection to every driver, and the soft limit is often 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _wait_for(attempt: Callable[[], T | None], liveness: WatchLiveness) -> T:
    while True:
        liveness.reset()
        try:
            if (found := attempt()) is not None:
                return found
        except ApiError as error:
            logs.log.warning("API server not available; waiting", extra={"fields": {"error": str(error)}})
        time.sleep(WAIT)


def _definition_exists(api: ApiClient) -> bool | None:
    if api.read(f"/apis/{API_VERSION}") is not None:
        return True
    logs.log.warning("the CustomResourceDefinition of S3Sink is not installed; waiting for it")
    return None


def _cluster_id(api: ApiClient) -> str:
    try:
        namespace = api.read("/api/v1/namespaces/kube-system")
    except ApiError as error:
        if error.status != 403:
            raise
        raise SystemExit(f"cannot read the uid of the namespace kube-system; set --cluster-id: {error}") from error
    if namespace is None:
        raise SystemExit("there is no namespace kube-system; set --cluster-id")
    return str(namespace["metadata"]["uid"])
