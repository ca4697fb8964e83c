"""Checks that every record is in the bucket exactly once: with independent readers, and with `s3sink verify`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from tools.parts.cli_process import CliProcess
from tools.parts.processes import PartFailed

EXACT = {"ok": True, "missing": 0, "duplicates": 0, "gaps": 0, "unlisted": 0, "skipped": 0, "pending": 0}
SHOWN = 10


@dataclass(frozen=True)
class Comparison:
    """Compares Kafka with the bucket. A record that is twice in Kafka must be twice in the bucket."""

    records: int
    """The number of records in Kafka."""
    missing: pl.DataFrame
    """Columns id, sum, missing (a count) and places (partition-offset in Kafka)."""
    twice: pl.DataFrame
    """Columns id, sum, twice (the surplus), places and keys (of the objects)."""
    foreign: pl.DataFrame
    """Columns id, sum, keys: records that are not in Kafka."""

    @property
    def exact(self) -> bool:
        return not (len(self.missing) or len(self.twice) or len(self.foreign))

    def in_words(self) -> list[str]:
        """The problems, with their places in Kafka and their objects."""
        found = []
        for name, rows in (("missing", self.missing), ("duplicate", self.twice), ("foreign", self.foreign)):
            found += [f"{len(rows):,} {name} records, the first of them:"] if len(rows) else []
            found += [f"  {_shown(row)}" for row in rows.head(SHOWN).iter_rows(named=True)]
        return found


def compare(kafka: pl.DataFrame, bucket: pl.DataFrame) -> Comparison:
    record = ["id", "sum"]
    place = pl.format("{}-{}", "partition", "offset")
    wanted = kafka.group_by(record).agg(pl.len().alias("wanted"), place.sort().alias("places"))
    there = bucket.group_by(record).agg(pl.len().alias("there"), pl.col("key").sort().alias("keys"))
    both = wanted.join(there, on=record, how="full", coalesce=True).sort(record)
    both = both.with_columns(pl.col("wanted", "there").fill_null(0).cast(pl.Int64))
    more = (pl.col("there") - pl.col("wanted")).alias("twice")
    return Comparison(
        records=len(kafka),
        missing=both.filter(pl.col("there") < pl.col("wanted")).select(*record, (-more).alias("missing"), "places"),
        twice=both.filter((pl.col("there") > pl.col("wanted")) & (pl.col("wanted") > 0)).select(
            *record, more, "places", "keys"
        ),
        foreign=both.filter(pl.col("wanted") == 0).select(*record, "keys"),
    )


def verify(manifest: Path, folder: Path, records: int) -> list[str]:
    """The problems that `s3sink verify` finds; it must count as many records as Kafka has."""
    try:
        with CliProcess(folder / "verify.log") as s3sink:
            report = json.loads(s3sink("verify", "-f", str(manifest), "--json"))
    except PartFailed as failed:
        return [str(failed)]
    wrong = {key: report[key] for key, value in {**EXACT, "records": records}.items() if report[key] != value}
    return [f"s3sink verify, of {records:,} records: {wrong}, findings: {report['findings']}"] if wrong else []


def _shown(row: dict[str, Any]) -> str:
    said = {name: value for name, value in row.items() if name != "sum"}
    return ", ".join(f"{k} {', '.join(v) if isinstance(v, list) else v}" for k, v in said.items())
