"""Reads the Dockerfile, so that all that it says about the image is written down once.

The builder without Docker takes from it the base, the Python, the files that each step sees, and the settings of the
last stage.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

_SCRIPT = re.compile(r"(?:^|[\s/])([a-z]+)\.sh\b")


class UnknownInstruction(ValueError):
    """The Dockerfile says something that only Docker would understand."""


@dataclass(frozen=True)
class Step:
    """A RUN that starts a script of e2e/image/steps."""

    sources: tuple[str, ...]
    """What COPY has brought from the project by then: files and whole folders."""


def image_config(dockerfile: str) -> dict[str, Any]:
    """ENV, USER, WORKDIR, EXPOSE, LABEL, ENTRYPOINT and CMD by their names in the OCI specification."""
    config: dict[str, Any] = {}
    for name, rest in _instructions(dockerfile):
        match name:
            case "FROM":
                config = {}
            case "ENV":
                config["Env"] = config.get("Env", []) + shlex.split(rest)
            case "LABEL":
                config["Labels"] = config.get("Labels", {}) | _pairs(rest)
            case "USER":
                config["User"] = rest
            case "WORKDIR":
                config["WorkingDir"] = rest
            case "EXPOSE":
                config["ExposedPorts"] = {f"{port}/tcp": {} for port in rest.split()}
            case "ENTRYPOINT":
                config["Entrypoint"] = json.loads(rest)
            case "CMD":
                config["Cmd"] = json.loads(rest)
            case "COPY" | "RUN":
                pass
            case _:
                raise UnknownInstruction(f"{name} in the Dockerfile has no counterpart in e2e/image")
    if any("$" in setting for setting in config.get("Env", [])):
        raise UnknownInstruction("ENV in the last stage of the Dockerfile must not refer to other variables")
    return config


def debian_suite(dockerfile: str) -> str:
    """`bookworm` of `FROM debian:bookworm-20260918-slim@sha256:…`."""
    base = next(rest for name, rest in _instructions(dockerfile) if name == "FROM")
    found = re.match(r"debian:([a-z]+)-", base)
    if not found:
        raise UnknownInstruction(f"the first stage of the Dockerfile must be FROM a suite of Debian's, not {base}")
    return found[1]


def python_version(dockerfile: str) -> str:
    """`3.11`, from the one place that names the program: ENV PYTHON of a stage that builds."""
    settings = [_pairs(rest) for name, rest in _instructions(dockerfile) if name == "ENV"]
    (program,) = (pairs["PYTHON"] for pairs in settings if "PYTHON" in pairs)
    return PurePosixPath(program).name.removeprefix("python")


def steps(dockerfile: str) -> dict[str, Step]:
    """By the name of the script, in the order of the layers."""
    found: dict[str, Step] = {}
    copied: list[str] = []
    for name, rest in _instructions(dockerfile):
        match name:
            case "FROM":
                copied = []
            case "COPY" if not rest.startswith("--from="):
                copied += _sources(rest)
            case "RUN":
                for script in _SCRIPT.findall(rest):
                    if script != "bootstrap":
                        found.setdefault(script, Step(tuple(copied)))
    return found


def _sources(rest: str) -> list[str]:
    """Where paths do not stay what they are in the project, a step would see another tree than without Docker."""
    *sources, target = rest.split()
    for source in sources:
        parent = str(PurePosixPath(source).parent)
        kept = target in (source, f"{parent}/") or (target == "./" and parent == ".")
        if not kept and target != "/tmp/":
            raise UnknownInstruction(f"COPY {rest}: the target must be the same path as the source")
    return sources


def _pairs(rest: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in shlex.split(rest))


def _instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name.upper(), rest.strip()
