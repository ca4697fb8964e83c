"""A folder of limited size for encoded data that does not fit into memory.

Each process has a folder with a lock in it. A folder without a lock belongs to a process that was killed; the next
process removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from s3sink_job.base.errors import TransientError

LOCK = "lock"


class SpillFull(TransientError):
    """The disk is full. Nothing is lost: Kafka still has the records."""

    reason = "SpillFull"


@dataclass(frozen=True)
class SpillPlace:
    folder: str
    limit: int
    """Bytes that one task may have there."""


def spill_folder() -> str:
    """The folder of Spark's temporary files: in a pod it is a volume of limited size."""
    base = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    return str(Path(base) / f"s3sink-spill-{os.getuid()}")


@dataclass
class Spill:
    place: SpillPlace
    _folder: Path | None = None
    _lock: IO[str] | None = None
    _files: int = 0
    _sizes: dict[Path, int] = field(default_factory=dict)

    @property
    def used(self) -> int:
        # A copy: uploads remove their files at the same time.
        return sum(list(self._sizes.values()))

    @property
    def filling(self) -> bool:
        """Whether it is worth compressing what is written there."""
        return self.used >= self.place.limit // 8

    @property
    def crowded(self) -> bool:
        """Whether to close objects instead of filling them."""
        return self.used >= self.place.limit // 2

    @property
    def nearly_full(self) -> bool:
        """Whether to close objects at once, even those that are written one by one."""
        return self.used >= self.place.limit // 4 * 3

    def new_file(self) -> Path:
        self._files += 1
        return self._own_folder() / str(self._files)

    def grew(self, path: Path, size: int) -> None:
        self._sizes[path] = size
        if self.used > self.place.limit:
            raise SpillFull(self._message(f"its limit of {self.place.limit >> 20} MiB is reached"))

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._sizes.pop(path, None)

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._sizes.clear()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turns the error of a full disk into `SpillFull`."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise SpillFull(self._message("the disk is full")) from error
            raise

    def _message(self, why: str) -> str:
        return (
            f"no room to spill encoded data in {self.place.folder}: {why}. Free some, or raise spark.driver.spill "
            "(executor.spill in Cluster mode); retrying"
        )

    def _own_folder(self) -> Path:
        if self._folder is None:
            with self.writing():
                base = Path(self.place.folder)
                base.mkdir(mode=0o700, parents=True, exist_ok=True)
                with (base / LOCK).open("w") as gate:
                    # One process at a time: a new folder has no lock yet, and looks like one to remove.
                    fcntl.flock(gate, fcntl.LOCK_EX)
                    remove_unlocked(base)
                    self._folder = Path(tempfile.mkdtemp(dir=base))
                    self._lock = (self._folder / LOCK).open("w")
                    fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self._folder


def remove_unlocked(base: Path) -> None:
    """Removes the folders without a lock."""
    for folder in base.iterdir():
        try:
            with (folder / LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
