"""`python -m tests.corpus record`: runs every case and writes what the tests compare with."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.corpus.cases import CASES
from tests.corpus.recording import DOCUMENTS, HERE, Recording, record, write
from tests.harness import World, start_spark
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import Versitygw


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("command", choices=["record"])
    parser.add_argument("--to", type=Path, default=HERE, help="the folder to write to; default: the corpus itself")
    parser.add_argument("--only", nargs="+", choices=sorted(CASES), metavar="CASE", help="some cases; with --to")
    parser.add_argument("--reverse", action="store_true", help="the last case first: the order must not matter")
    return parser.parse_args()


def main() -> int:
    asked = options()
    begin = time.monotonic()
    names = sorted(asked.only or CASES, reverse=asked.reverse)
    recordings: dict[str, Recording] = {}
    with KafkaBroker() as kafka, Versitygw() as s3, tempfile.TemporaryDirectory() as folder:
        spark = start_spark()
        try:
            for number, name in enumerate(names):
                started = time.monotonic()
                bucket = s3.create_bucket(f"corpus-{number}")
                world = World(kafka, s3, spark, bucket, "", Path(folder) / name)
                recordings[name] = record(name, CASES[name], world)
                _say(f"{name}: {len(recordings[name].summary['objects'])} objects, {_since(started)}")
        finally:
            spark.stop()
    shutil.rmtree(asked.to / DOCUMENTS.name, ignore_errors=True)
    asked.to.mkdir(parents=True, exist_ok=True)
    write(recordings, asked.to)
    _say(f"{len(recordings)} cases, {_since(begin)}")
    return 0


def _since(begin: float) -> str:
    return f"{time.monotonic() - begin:.1f} s"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
