"""The process that Spark's Python workers are forked from, with all that a task needs imported already.

PySpark's own daemon imports nothing: every task would pay for pyarrow, boto3 and DuckDB, and for a search
of the whole import path for changes that never come. Only modules are loaded here; connections and threads
are made after the fork.
"""

from __future__ import annotations

import gc
import importlib

from pyspark.daemon import manager

import s3sink_job.engine.compare
import s3sink_job.engine.write  # noqa: F401


def main() -> None:
    importlib.invalidate_caches = lambda: None
    # What is imported now lives as long as the workers: no collection needs to look at it again.
    gc.collect()
    gc.freeze()
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
