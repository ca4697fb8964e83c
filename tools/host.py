"""Debian programs that building the image and running a cluster need on this machine, and progress lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping


class SetupFailed(Exception):
    """A step cannot run on this machine; the message says what is missing and what to do."""


def say(text: str) -> None:
    """Prints a progress line, for a step that takes long."""
    print(f"• {text}", file=sys.stderr, flush=True)


def program(name: str) -> str | None:
    # Some of Debian's programs are in folders that PATH may lack.
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def install(packages: Mapping[str, str]) -> None:
    """Installs the packages of programs that are missing. `packages` maps a program to its Debian package."""
    missing = sorted({package for name, package in packages.items() if not program(name)})
    if not missing:
        return
    command = f"apt-get update && apt-get install -y --no-install-recommends {' '.join(missing)}"
    if not shutil.which("apt-get"):
        raise SetupFailed(f"missing: {', '.join(missing)}; install them (on Debian: {command})")
    if os.geteuid() != 0:
        raise SetupFailed(f"missing: {', '.join(missing)}; run as root: {command}")
    say(f"installing {' '.join(missing)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupFailed(f"could not install {' '.join(missing)}:\n{done.stderr[-2000:]}")
