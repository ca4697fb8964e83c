"""`python -m s3sink_operator`."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence

import kopf

from s3sink_operator import logs
from s3sink_operator.api import Api, ApiError
from s3sink_operator.app import App
from s3sink_operator.crd.definition import GROUP, VERSION
from s3sink_operator.health import serve
from s3sink_operator.settings import Settings

WAIT_FOR_DEFINITION = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.image:
        parser.error("--image or S3SINK_IMAGE must name the image of drivers")
    logs.set_up()
    _allow_many_connections()
    api = Api()
    _wait_for_definition(api)
    settings = Settings(
        image=given.image,
        cluster=given.cluster_id or _cluster_id(api),
        namespaces=tuple(name for name in given.namespaces.split(",") if name),
        listen=_address(parser, given.listen),
        poll_every=given.poll_interval,
        figures_every=given.figures_interval,
        stale_after=given.stale_after,
        grace=given.grace,
        workers=given.workers,
        pull_policy=given.pull_policy,
        rolling=given.rolling,
        driver_port=given.driver_port,
        allow_unsafe_templates=given.allow_unsafe_templates,
    )
    app = App(api, settings)
    server = serve(settings.listen, app.metrics.registry, app.pulse)
    try:
        kopf.run(
            registry=app.registry(),
            settings=app.kopf_settings(),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            stop_flag=app.broken,
        )
    finally:
        server.shutdown()
    return 1 if app.broken.is_set() else 0


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
    flag("listen", f"0.0.0.0:{defaults.listen[1]}", "address of /metrics, /healthz and /readyz")
    flag("poll-interval", defaults.poll_every, "seconds between two looks at each sink", float)
    flag("figures-interval", defaults.figures_every, "seconds between two writes of figures", float)
    flag("stale-after", defaults.stale_after, "seconds until a silent driver makes Ready Unknown", float)
    flag("grace", defaults.grace, "seconds a driver gets to finish a flush when it is stopped", int)
    flag("workers", defaults.workers, "sinks that are looked at at the same time", int)
    flag("pull-policy", defaults.pull_policy, "imagePullPolicy of drivers and executors")
    flag("rolling", defaults.rolling, "drivers that a new version of the operator restarts at a time", int)
    flag("driver-port", defaults.driver_port, "port of drivers for /status, /metrics and /healthz", int)
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


def _wait_for_definition(api: Api) -> None:
    while True:
        try:
            if api.read(f"/apis/{GROUP}/{VERSION}") is not None:
                return
            logs.log.warning("the CustomResourceDefinition of S3Sink is not installed: waiting for it")
        except ApiError as error:
            logs.log.warning("waiting for the API server", extra={"fields": {"error": str(error)}})
        time.sleep(WAIT_FOR_DEFINITION)


def _cluster_id(api: Api) -> str:
    namespace = api.read("/api/v1/namespaces/kube-system")
    if namespace is None:
        raise SystemExit("there is no namespace kube-system: name the cluster with --cluster-id")
    return str(namespace["metadata"]["uid"])


if __name__ == "__main__":
    sys.exit(main())
