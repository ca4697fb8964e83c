"""The flags of the operator, each with its environment variable."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from s3sink_api import environment
from s3sink_api.ports import OPERATOR_PORT
from s3sink_operator.settings import Settings


@dataclass(frozen=True)
class Flags:
    settings: Settings
    """With an empty `cluster` if --cluster-id is not set."""
    listen: tuple[str, int]


def parse_flags(arguments: Sequence[str] | None = None) -> Flags:
    parser = flag_parser()
    given = parser.parse_args(arguments)
    if not given.image:
        parser.error(f"set --image or {environment.IMAGE} to the image of drivers")
    settings = Settings(
        image=given.image,
        cluster=given.cluster_id,
        namespaces=tuple(name for name in given.namespaces.split(",") if name),
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
    return Flags(settings, _address(parser, given.listen))


def flag_parser() -> argparse.ArgumentParser:
    defaults = Settings(image="", cluster="")
    parser = argparse.ArgumentParser(prog="s3sink-operator", description="Runs S3Sink resources.")
    add = parser.add_argument

    def flag(name: str, default: object, text: str, kind: Callable[[str], object] = str) -> None:
        variable = environment.OPERATOR_PREFIX + name.upper().replace("-", "_")
        add(f"--{name}", type=kind, default=os.environ.get(variable, default), help=f"{text} [{variable}]")

    image = environment.IMAGE
    add("--image", default=os.environ.get(image, ""), help=f"image of drivers and executors [{image}]")
    flag("namespaces", "", "namespaces to watch, separated by commas; all if empty")
    flag("cluster-id", "", "owner of the state in buckets; the uid of the namespace kube-system if empty")
    flag("listen", f"0.0.0.0:{OPERATOR_PORT}", "address of /metrics, /healthz and /readyz")
    flag("poll-interval", defaults.poll_every, "seconds between two polls of each driver", float)
    flag("figures-interval", defaults.figures_every, "seconds between two writes of figures to a status", float)
    flag("stale-after", defaults.stale_after, "seconds without a report after which Ready is Unknown", float)
    flag("grace", defaults.grace, "seconds a driver gets to finish its flush at shutdown", int)
    flag("workers", defaults.workers, "sinks that are reconciled at the same time", int)
    flag("pull-policy", defaults.pull_policy, "imagePullPolicy of drivers and executors")
    flag("rolling", defaults.rolling, "drivers that a new version of the operator restarts at a time", int)
    flag("driver-port", defaults.driver_port, "port of drivers for /status, /metrics and /healthz", int)
    flag("watch-timeout", defaults.watch_timeout, "seconds after which each watch is restarted", int)
    flag("watch-dead-after", defaults.watch_dead_after, "seconds of silence on a watch that fail /healthz", float)
    flag("resync-interval", defaults.resync_every, "seconds between two comparisons with all objects", float)
    flag("allow-unsafe-templates", False, "true: a podTemplate may change anything of a pod", _boolean)
    return parser


def _boolean(text: str) -> bool:
    if text not in {"true", "false"}:
        raise argparse.ArgumentTypeError(f"must be true or false, not {text}")
    return text == "true"


def _address(parser: argparse.ArgumentParser, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        parser.error(f"--listen must be host:port, such as 0.0.0.0:{OPERATOR_PORT}, not {text}")
    return host, int(port)
