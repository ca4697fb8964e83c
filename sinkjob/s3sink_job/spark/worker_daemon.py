"""The process that Spark's Python workers are forked from. It has imported everything that a task needs.

PySpark's own daemon imports nothing: every task would import pyarrow, boto3 and DuckDB, and search the whole import
path for changes. Only modules are loaded here. Connections and threads are created after the fork.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa
from pyspark.daemon import manager

NEEDED = ("s3sink_job.proof.comparison_task", "s3sink_job.task.slice_task")
# Of glibc's malloc.h. By default each batch of a few MB is mapped and unmapped, and the kernel has to clear its pages,
# which took a fifth of a worker's time.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
KEPT, LARGEST = 64 * 2**20, 32 * 2**20
ARENAS = 2
"""Malloc arenas. Each keeps what was freed in it, and eight threads send objects."""


def keep_memory() -> None:
    """Keeps freed memory in the process. Without effect if the C library has no mallopt."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_ARENA_MAX, ARENAS)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def without_pandas() -> None:
    """Keeps Arrow from importing pandas, which takes half of the start of this process and 30 MB.

    Arrow tries it once, at its first Python list. PySpark needs pandas in the driver, but no task does.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def main() -> None:
    keep_memory()
    without_pandas()
    for name in NEEDED:
        importlib.import_module(name)
    importlib.invalidate_caches = lambda: None
    # Modules live as long as the workers: the garbage collector need not visit them again.
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
