"""The cache of downloaded and built parts: only the first run on a machine waits for them.

Several test runs may start at once on one machine. Each entry is built under a lock, in a temporary folder, and renamed
when it is complete: a reader sees a whole entry or none, also after a crash.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "s3sink"


def build_once(name: str, build: Callable[[Path], None]) -> Path:
    """The cache folder `name`; `build(empty folder)` fills it if it does not exist.

    A name must contain the version of its content: an existing entry is never checked or rebuilt.
    """
    root = cache_root()
    entry = root / name
    if entry.is_dir():
        return entry
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / f".{name}.lock"):
        if entry.is_dir():
            return entry
        staging = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=root))
        try:
            build(staging)
            staging.chmod(0o755)
            staging.rename(entry)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    return entry


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock between processes; the kernel releases it when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
