"""Reads the job's `versions.toml`, the one place for versions of external parts."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _versions() -> dict[str, Any]:
    return tomllib.loads((files("s3sink_job") / "versions.toml").read_text())


def version(section: str, name: str) -> str:
    return str(_versions()[section][name])


def section(name: str) -> dict[str, str]:
    return {key: str(value) for key, value in _versions()[name].items()}
