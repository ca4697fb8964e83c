"""Results and goals: tables to read, JSON to compare runs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench import MIB, Round, SmallFlushes
from benchmarks.cases import (
    AVRO,
    BESIDE,
    COLUMNS,
    DROPS_MOST,
    JSON_SCHEMA,
    KEEPS_ALL,
    LAST_VERSION,
    LIMIT,
    LINES,
    MANY,
    PROTOBUF,
    REFERENCE,
    SUPPLIED,
    UNCHANGED,
    VERSIONS,
)

HERE = Path(__file__).parent
RESULTS, DETAILS = HERE / "results.json", HERE / "details.json"
RATIOS = {LINES: 0.50, COLUMNS: 0.25}
PEAK_MIB = 1.3e9 / MIB
SHAPE_RATIOS = {"parquet-by-field": 0.7, "parquet-by-hour": 0.7, "avro": 0.6}
RATIOS_IN_TURNS = (
    (KEEPS_ALL, UNCHANGED, 1 / 1.15),
    (DROPS_MOST, UNCHANGED, 2.0),
    (AVRO, BESIDE, 1.5),
    (VERSIONS, LAST_VERSION, 0.85),
    (PROTOBUF, BESIDE, 1.2),
    (JSON_SCHEMA, SUPPLIED, 1.0),
)
"""Of a case to another one in the same turns."""
MANY_MIB = 2e9 / MIB
SMALL_SECONDS = 0.6
GROWTH = 0.10
"""The growth that still counts as flat: a heap's size varies."""


@dataclass(frozen=True)
class Goal:
    """One figure and its goal."""

    name: str
    value: float
    limit: float
    at_least: bool
    shown: str

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value < self.limit


def results(rounds: Mapping[str, Round], **references: Round) -> list[dict[str, Any]]:
    """A line for each case, with its ratio to each reference."""
    return [
        {
            "case": name,
            "records_per_s": round(found.per_second),
            "records_per_cpu_s": round(found.per_cpu_second),
            "peak_mib": round(found.peak_mib),
            **{f"ratio_to_{what}": round(found.per_cpu_second / r.per_cpu_second, 3) for what, r in references.items()},
        }
        for name, found in rounds.items()
    ]


def goals(
    rounds: Mapping[str, Round],
    shapes: Mapping[str, Round],
    transforms: Mapping[str, Round],
    typed: Mapping[str, Round],
    small: SmallFlushes | None,
    backlog: Mapping[str, Round],
) -> list[Goal]:
    found: list[Goal] = []
    for name, ratio in SHAPE_RATIOS.items():
        if name in shapes:
            value = shapes[name].per_cpu_second / shapes[REFERENCE].per_cpu_second
            found.append(Goal(f"{name}: ratio to {REFERENCE}", value, ratio, True, f"{value:.2f} of {ratio:.2f}"))
    in_turns = {**transforms, **typed}
    for name, reference, ratio in RATIOS_IN_TURNS:
        if name in in_turns:
            value = in_turns[name].per_cpu_second / in_turns[reference].per_cpu_second
            found.append(Goal(f"{name}: ratio to {reference}", value, ratio, True, f"{value:.2f} of {ratio:.2f}"))
    if MANY.name in shapes:
        peak = shapes[MANY.name].peak_mib
        found.append(Goal(f"{MANY.name}: peak memory", peak, MANY_MIB, False, _below(peak, MANY_MIB, "MiB")))
    limit = rounds[LIMIT].per_cpu_second
    for name, ratio in RATIOS.items():
        if name in rounds:
            value = rounds[name].per_cpu_second / limit
            found.append(Goal(f"{name}: ratio to the limit", value, ratio, True, f"{value:.2f} of {ratio:.2f}"))
    for name, drained in [*rounds.items(), *backlog.items()]:
        if name in RATIOS:
            what = f"{name}: peak memory at {drained.records:,} records"
            found.append(Goal(what, drained.peak_mib, PEAK_MIB, False, _below(drained.peak_mib, PEAK_MIB, "MiB")))
    if small is not None:
        flush, memory = "small flush, 4 partitions of 1,000 records", f"memory over {small.count} small flushes"
        shown = f"{small.seconds:.2f} s, below {SMALL_SECONDS} s"
        found.append(Goal(flush, small.seconds, SMALL_SECONDS, False, shown))
        shown = f"{small.settled_mib:,.0f} → {small.last_mib:,.0f} MiB, below +{GROWTH:.0%}"
        found.append(Goal(memory, small.growth, GROWTH, False, shown))
    return found


def _below(value: float, limit: float, unit: str) -> str:
    return f"{value:,.0f}, below {limit:,.0f} {unit}"


def show(console: Console, rounds: Mapping[str, Round], records: int, reference: str = LIMIT) -> None:
    table = Table(title=f"{records:,} records", title_justify="left")
    table.add_column("case", no_wrap=True)
    for heading in ("records/s", "per CPU-s", "CPU µs each", "peak MiB", f"ratio to {reference.partition('-')[0]}"):
        table.add_column(heading, justify="right")
    for line in results(rounds, it=rounds[reference]):
        cost = f"{1e6 / line['records_per_cpu_s']:.2f}"
        speed = (f"{line['records_per_s']:,}", f"{line['records_per_cpu_s']:,}", cost)
        table.add_row(line["case"], *speed, f"{line['peak_mib']:,}", f"{line['ratio_to_it']:.2f}")
    console.print(table)


def show_goals(console: Console, found: list[Goal]) -> None:
    table = Table(title="Goals", title_justify="left")
    for heading in ("what", "measured", ""):
        table.add_column(heading)
    for goal in found:
        table.add_row(goal.name, goal.shown, "[green]met[/]" if goal.met else "[red]missed[/]")
    console.print(table)


def write(
    rounds: Mapping[str, Round],
    shapes: Mapping[str, Round],
    transforms: Mapping[str, Round],
    typed: Mapping[str, Round],
    small: SmallFlushes | None,
    backlog: Mapping[str, Round],
) -> None:
    lines = results(rounds, limit=rounds[LIMIT])
    if shapes:
        lines += results(shapes, limit=rounds[LIMIT], parquet=shapes[REFERENCE])
    if transforms:
        lines += results(transforms, limit=rounds[LIMIT], parquet=transforms[UNCHANGED])
    if typed:
        lines += results(typed, limit=rounds[LIMIT], json_parquet=typed[BESIDE])
    RESULTS.write_text(json.dumps(lines, indent=2) + "\n")
    details = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "processor": _processor(), "system": platform.platform()},
        "cases": {name: asdict(found) for name, found in rounds.items()},
        "shapes": {name: asdict(found) for name, found in shapes.items()},
        "transforms": {name: asdict(found) for name, found in transforms.items()},
        "typed": {name: asdict(found) for name, found in typed.items()},
        "small_flush": None if small is None else {**asdict(small), "growth": small.growth},
        "backlog": {name: asdict(found) for name, found in backlog.items()},
    }
    DETAILS.write_text(json.dumps(details, indent=2) + "\n")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
