"""Reads the Dockerfile for the builder without Docker.

From it come the base, the Python version, the files that each step sees, and the settings of the last stage.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

_SCRIPT = re.compile(r"[\w./-]+\.sh\b")


class UnknownInstruction(ValueError):
    """The Dockerfile has an instruction that only Docker understands."""


@dataclass(frozen=True)
class Step:
    """A RUN that starts one of the scripts that fill a layer."""

    script: str
    """Its path in the project."""
    sources: tuple[str, ...]
    """Files and folders of the project that COPY has brought by then."""


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
                raise UnknownInstruction(f"tools/image does not support the Dockerfile's {name}")
    if any("$" in setting for setting in config.get("Env", [])):
        raise UnknownInstruction("ENV in the last stage of the Dockerfile must not refer to other variables")
    return config


def debian_suite(dockerfile: str) -> str:
    """`bookworm` of `FROM debian:bookworm-20260918-slim@sha256:…`."""
    base = next(rest for name, rest in _instructions(dockerfile) if name == "FROM")
    found = re.match(r"debian:([a-z]+)-", base)
    if not found:
        raise UnknownInstruction(f"the first stage of the Dockerfile must be FROM a suite of Debian, not {base}")
    return found[1]


def python_version(dockerfile: str) -> str:
    """`3.11`, from ENV PYTHON of the build stage."""
    settings = [_pairs(rest) for name, rest in _instructions(dockerfile) if name == "ENV"]
    (program,) = (pairs["PYTHON"] for pairs in settings if "PYTHON" in pairs)
    return PurePosixPath(program).name.removeprefix("python")


def steps(dockerfile: str) -> dict[str, Step]:
    """The steps by the names of their scripts, in the order of the layers."""
    found: dict[str, Step] = {}
    copied: list[str] = []
    for name, rest in _instructions(dockerfile):
        match name:
            case "FROM":
                copied = []
            case "COPY" if not rest.startswith("--from="):
                copied += _sources(rest)
            case "RUN":
                for script in map(PurePosixPath, _SCRIPT.findall(rest)):
                    if script.stem != "bootstrap":
                        found.setdefault(script.stem, Step(_in_project(script, copied), tuple(copied)))
    return found


def _in_project(script: PurePosixPath, copied: list[str]) -> str:
    """A script runs at its path in the project, or where a COPY put it."""
    return next((source for source in copied if PurePosixPath(source).name == script.name), str(script))


def _sources(rest: str) -> list[str]:
    """A file must keep its path: otherwise the step would see different trees with and without Docker."""
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
