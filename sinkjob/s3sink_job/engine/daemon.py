"""The process that Spark's Python workers are forked from, with all that a task needs imported already.

PySpark's own daemon imports nothing: every task would pay for pyarrow, boto3 and DuckDB, and for a search
of the whole import path for changes that never come. Only modules are loaded here; connections and threads
are made after the fork.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa
from pyspark.daemon import manager

NEEDED = ("s3sink_job.engine.compare", "s3sink_job.engine.write")
# Of glibc's malloc.h. Batches of a few MB come and go all the time: by default each is mapped and given back, and the
# kernel clears its pages anew, which took a fifth of a worker's time.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
KEPT, LARGEST = 64 * 2**20, 32 * 2**20
ARENAS = 2
"""Places that threads take memory from. Each keeps what was freed there, and there are eight threads that send."""


def keep_memory() -> None:
    """Freed memory stays with the process. Where the C library knows no such setting, nothing changes."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_ARENA_MAX, ARENAS)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def without_pandas() -> None:
    """Arrow looks for pandas when it gets its first Python list, and imports it: half of this process's start, 30 MB.

    It looks but once. PySpark insists that pandas is there, in the driver; no task has to do with it.
    """
    blind = _NoPandas()
    sys.meta_path.insert(0, blind)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(blind)


def main() -> None:
    keep_memory()
    without_pandas()
    for name in NEEDED:
        importlib.import_module(name)
    importlib.invalidate_caches = lambda: None
    # What is imported now lives as long as the workers: no collection needs to look at it again.
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
