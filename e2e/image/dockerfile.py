"""Reads an image's settings from the last stage of a Dockerfile, so that they are written down once."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any


class UnknownInstruction(ValueError):
    """The Dockerfile says something that only Docker would understand."""


def image_config(dockerfile: str) -> dict[str, Any]:
    """ENV, USER, WORKDIR, EXPOSE, ENTRYPOINT and CMD by their names in the OCI specification."""
    config: dict[str, Any] = {}
    for name, rest in _instructions(dockerfile):
        match name:
            case "FROM":
                config = {}
            case "ENV":
                config["Env"] = config.get("Env", []) + shlex.split(rest)
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


def _instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name.upper(), rest.strip()
