"""Runs the chosen cases and compares the results with the goals."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks import report
from benchmarks.bench import Bench, Round
from benchmarks.cases import BESIDE, CASES, LIMIT, MANY, REFERENCE, SHAPES, UNCHANGED, WARM_UP, Case
from benchmarks.runner import ChildFailed
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import Versitygw

MANY_RECORDS = 2_000_000
"""Enough records that a slice does not fit into memory."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000, help="records in the measured topic")
    parser.add_argument("--warm-up", type=int, default=500_000, help="records of the warm-up round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per case; the median counts")
    parser.add_argument("--case", action="append", choices=list(CASES), help="run only these cases, and the limit")
    parser.add_argument("--flushes", type=int, default=200, help="number of small flushes in a row; 0: none")
    parser.add_argument("--backlog", type=int, default=0, help="also copy a topic with this many records, once")
    parser.add_argument("--shapes", type=int, default=2_000_000, help="records for other formats and layouts; 0: none")
    parser.add_argument("--transforms", type=int, default=4_000_000, help="records for transforms; 0: none")
    parser.add_argument("--typed", type=int, default=2_000_000, help="records with schemas beside JSON; 0: none")
    parser.add_argument("--cores", type=int, default=2, help="spark.driver.cores of the sinks")
    parser.add_argument("--strict", action="store_true", help="end with 1 when a goal is missed")
    return parser.parse_args()


def main() -> int:
    chosen, console = options(), Console()
    cases = _taken(console, [c for c in CASES.values() if c.name in (LIMIT, *(chosen.case or CASES))])
    with (
        tempfile.TemporaryDirectory(prefix="s3sink-bench-logs-") as folder,
        KafkaBroker() as kafka,
        Versitygw() as s3,
    ):
        bench = Bench(kafka, s3, Path(folder), console, chosen.cores)
        bench.topic(WARM_UP, chosen.warm_up)
        rounds = bench.turns(
            cases, bench.topic("events", chosen.records), chosen.records, chosen.warm_up, chosen.rounds
        )
        report.show(console, rounds, chosen.records)
        shapes: dict[str, Round] = {}
        if chosen.shapes:
            topic = bench.topic("shapes", chosen.shapes)
            shapes = bench.turns(SHAPES.values(), topic, chosen.shapes, chosen.warm_up, chosen.rounds)
            report.show(console, shapes, chosen.shapes, REFERENCE)
            shapes[MANY.name] = bench.many(MANY, MANY_RECORDS)
        transforms: dict[str, Round] = {}
        if chosen.transforms:
            transforms = bench.transforms(chosen.transforms, chosen.warm_up, chosen.rounds)
            report.show(console, transforms, chosen.transforms, UNCHANGED)
        typed: dict[str, Round] = {}
        if chosen.typed:
            typed = bench.typed(chosen.typed, chosen.warm_up, chosen.rounds)
            report.show(console, typed, chosen.typed, BESIDE)
        small = bench.small(chosen.flushes) if chosen.flushes else None
        backlog: dict[str, Round] = {}
        if chosen.backlog:
            sinks = [case for case in cases if case.kind == "drain"]
            backlog = bench.turns(sinks, bench.topic("backlog", chosen.backlog), chosen.backlog, chosen.warm_up, 1)
    found = report.goals(rounds, shapes, transforms, typed, small, backlog)
    report.show_goals(console, found)
    report.write(rounds, shapes, transforms, typed, small, backlog)
    console.print(f"written: {report.RESULTS}, {report.DETAILS}")
    return 1 if chosen.strict and not all(goal.met for goal in found) else 0


def _taken(console: Console, cases: list[Case]) -> list[Case]:
    for case in cases:
        if refusal := case.refusal():
            console.print(f"{case.name} is skipped: {refusal}", markup=False, highlight=False)
    return [case for case in cases if not case.refusal()]


if __name__ == "__main__":
    # On SIGTERM, remove broker, S3 server and their folders.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        sys.exit(main())
    except ChildFailed as error:
        sys.exit(f"bench: {error}")
