"""`python -m s3sink_operator`."""

from __future__ import annotations

import argparse
import logging
import os
import resource
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import kopf
from prometheus_client import CollectorRegistry

from s3sink_operator import logs
from s3sink_operator.api import Api, ApiError
from s3sink_operator.app import App, watches
from s3sink_operator.crd.definition import GROUP, VERSION
from s3sink_operator.health import Pulse, serve
from s3sink_operator.memory import keep_little
from s3sink_operator.settings import Settings

WAIT = 5.0
"""Seconds between two looks for what the operator cannot begin without."""
LAST_REQUESTS = 5.0
"""Seconds that requests under way get when the operator stops."""
T = TypeVar("T")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.image:
        parser.error("--image or S3SINK_IMAGE must name the image of drivers")
    keep_little()
    logs.set_up()
    _allow_many_connections()
    namespaces = tuple(name for name in given.namespaces.split(",") if name)
    pulse, registry = Pulse(watches(namespaces), given.watch_dead_after), CollectorRegistry()
    # Probes are answered from the start: an operator that waits for the server must not be killed for it.
    server = serve(_address(parser, given.listen), registry, pulse)
    api = Api()
    _wait_for(lambda: _is_defined(api), pulse)
    settings = Settings(
        image=given.image,
        cluster=given.cluster_id or _wait_for(lambda: _cluster_id(api), pulse),
        namespaces=namespaces,
        poll_every=given.poll_interval,
        figures_every=given.figures_interval,
        stale_after=given.stale_after,
        grace=given.grace,
        workers=given.workers,
        pull_policy=given.pull_policy,
        rolling=given.rolling,
        driver_port=given.driver_port,
        watch_timeout=given.watch_timeout,
        watch_dead_after=given.watch_dead_after,
        resync_every=given.resync_interval,
        allow_unsafe_templates=given.allow_unsafe_templates,
    )
    app = App(api, settings, pulse, registry)
    try:
        kopf.run(
            registry=app.registry(),
            settings=app.kopf_settings(),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            stop_flag=app.over,
        )
        app.finish(LAST_REQUESTS)
    finally:
        server.shutdown()
    return 1 if app.broken else 0


def _parser() -> argparse.ArgumentParser:
    defaults = Settings(image="", cluster="")
    parser = argparse.ArgumentParser(prog="s3sink-operator", description="Runs S3Sink resources.")
    add = parser.add_argument

    def flag(name: str, default: object, text: str, kind: Callable[[str], object] = str) -> None:
        variable = "S3SINK_OPERATOR_" + name.upper().replace("-", "_")
        add(f"--{name}", type=kind, default=os.environ.get(variable, default), help=f"{text} [{variable}]")

    add("--image", default=os.environ.get("S3SINK_IMAGE", ""), help="image of drivers and executors [S3SINK_IMAGE]")
    flag("namespaces", "", "namespaces to look after, with commas between; all if empty")
    flag("cluster-id", "", "owner of the sinks' state; the uid of the namespace kube-system if empty")
    flag("listen", "0.0.0.0:8081", "address of /metrics, /healthz and /readyz")
    flag("poll-interval", defaults.poll_every, "seconds between two looks at each sink", float)
    flag("figures-interval", defaults.figures_every, "seconds between two writes of figures", float)
    flag("stale-after", defaults.stale_after, "seconds until a silent driver makes Ready Unknown", float)
    flag("grace", defaults.grace, "seconds a driver gets to finish a flush when it is stopped", int)
    flag("workers", defaults.workers, "sinks that are looked at at the same time", int)
    flag("pull-policy", defaults.pull_policy, "imagePullPolicy of drivers and executors")
    flag("rolling", defaults.rolling, "drivers that a new version of the operator restarts at a time", int)
    flag("driver-port", defaults.driver_port, "port of drivers for /status, /metrics and /healthz", int)
    flag("watch-timeout", defaults.watch_timeout, "seconds after which a watch begins anew", int)
    flag("watch-dead-after", defaults.watch_dead_after, "seconds of silence of a watch that make /healthz fail", float)
    flag("resync-interval", defaults.resync_every, "seconds between two comparisons with all there is", float)
    flag("allow-unsafe-templates", False, "true: podTemplate may change anything of a pod", _truth)
    return parser


def _allow_many_connections() -> None:
    """One is kept to every driver: what the system calls a soft limit is often 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _truth(text: str) -> bool:
    if text not in {"true", "false"}:
        raise argparse.ArgumentTypeError(f"{text} is neither true nor false")
    return text == "true"


def _address(parser: argparse.ArgumentParser, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        parser.error(f"--listen {text} is not host:port, such as 0.0.0.0:8081")
    return host, int(port)


def _wait_for(what: Callable[[], T | None], pulse: Pulse) -> T:
    while True:
        pulse.begin()
        try:
            if (found := what()) is not None:
                return found
        except ApiError as error:
            logs.log.warning("waiting for the API server", extra={"fields": {"error": str(error)}})
        time.sleep(WAIT)


def _is_defined(api: Api) -> bool | None:
    if api.read(f"/apis/{GROUP}/{VERSION}") is not None:
        return True
    logs.log.warning("the CustomResourceDefinition of S3Sink is not installed: waiting for it")
    return None


def _cluster_id(api: Api) -> str:
    try:
        namespace = api.read("/api/v1/namespaces/kube-system")
    except ApiError as error:
        if error.status != 403:
            raise
        raise SystemExit(f"name the cluster with --cluster-id: {error}") from error
    if namespace is None:
        raise SystemExit("there is no namespace kube-system: name the cluster with --cluster-id")
    return str(namespace["metadata"]["uid"])


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    # Whatever a thread still waits for may be done twice: it must not hold up the end.
    os._exit(code)
