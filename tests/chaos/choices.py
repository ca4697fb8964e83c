"""What the seed decides about the sink and its producers. A seed always chooses the same; only timing differs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

PREFIX = "data"

CODECS = {
    "Parquet": ("Zstd", "Snappy", "Gzip", "None"),
    "Json": ("Gzip", "None", "Zstd", "Lz4"),
    "Avro": ("Zstd", "Deflate", "Snappy", "None"),
    "Csv": ("Gzip", "None", "Bzip2"),
    "Text": ("None", "Gzip", "Zstd"),
    "Orc": ("Zstd", "Snappy", "None"),
    "Bytes": ("None", "Gzip", "Zstd"),
}
"""Formats follow the seed, so that seven seeds in a row have all of them; the codec is random."""

TOPIC, PARTITION = {"type": "Topic"}, {"type": "Partition"}
KIND = {"type": "Field", "path": ["kind"]}
HOUR = {"type": "Time", "source": "Record", "format": "yyyy/MM/dd/HH"}

LAYOUTS: dict[str, dict[str, Any]] = {
    "default layout": {},
    "by field": {"partitionBy": [TOPIC, KIND]},
    "by hour": {"partitionBy": [TOPIC, HOUR]},
    "Hive style": {
        "partitionBy": [TOPIC, {"type": "Time", "source": "Record", "format": "'day='yyyy-MM-dd/'hour='HH"}, KIND],
        "hiveStyle": True,
    },
    "Confluent names": {"partitionBy": [TOPIC, PARTITION], "hiveStyle": True, "objectName": "Confluent"},
    "Lenses names": {"partitionBy": [{"type": "Header", "name": "region"}], "objectName": "Lenses"},
    "Upload names": {"partitionBy": [TOPIC], "objectName": "Upload"},
    "by wall clock": {"partitionBy": [TOPIC, {"type": "Time", "source": "Wallclock", "format": "yyyyMMdd/HHmm"}]},
}
NOT_WITH_BYTES = {"Upload names", "by wall clock"}

SIZES = {"small": (20, 200), "mixed": (20, 2_000), "large": (1_000, 20_000)}
"""The length of a record's text: from, to."""
RATES = {"small": 2_500, "mixed": 700, "large": 60}
"""Records per second of all producers together: low enough for a sink on two cores."""
BYTES_RATE = 40
"""The same, with one object per record."""


@dataclass(frozen=True)
class Choices:
    seed: int
    format: str
    codec: str
    shape: str
    """What is added to a record's value: nothing, Kafka's columns, or an envelope."""
    layout: str
    flush: dict[str, Any]
    isolation: str
    partitions: int
    sizes: str
    rate: int
    producers: tuple[str, ...]
    """Kinds of producers, see `producers`."""

    def __str__(self) -> str:
        codec = "uncompressed" if self.codec == "None" else self.codec.lower()
        return f"{self.format} {codec} {self.layout}"

    def spec(self) -> dict[str, Any]:
        """The sections of the manifest that the seed decides."""
        shapes: dict[str, dict[str, Any]] = {
            "plain": {},
            "meta": {"columns": {"meta": "Kafka"}},
            "envelope": {"envelope": {"enabled": True}},
        }
        return {
            "layout": LAYOUTS[self.layout],
            "format": {"type": self.format, "compression": {"codec": self.codec}, **shapes[self.shape]},
            "flush": self.flush,
        }


def choose(seed: int) -> Choices:
    chance = Random(f"choices of {seed}")
    format = list(CODECS)[(seed - 1) % len(CODECS)]
    shapes = {"Text": ["plain"], "Bytes": ["plain"], "Csv": ["plain", "meta"]}.get(
        format, ["plain", "meta", "envelope"]
    )
    layouts = [name for name in LAYOUTS if format != "Bytes" or name not in NOT_WITH_BYTES]
    sizes = chance.choice(list(SIZES))
    return Choices(
        seed=seed,
        format=format,
        codec=chance.choice(CODECS[format]),
        shape=chance.choice(shapes),
        layout=chance.choice(layouts),
        flush=_flush(chance),
        isolation=chance.choice(["ReadCommitted", "ReadCommitted", "ReadCommitted", "ReadUncommitted"]),
        partitions=chance.choice([1, 2, 3, 4, 6]),
        sizes=sizes,
        rate=BYTES_RATE if format == "Bytes" else RATES[sizes],
        producers=("transactional", *chance.sample(["transactional", "idempotent", "plain"], 2)),
    )


def _flush(chance: Random) -> dict[str, Any]:
    """Short intervals, so that there are many flushes."""
    rules: dict[str, Any] = {
        "interval": chance.choice(["1s", "2s", "3s"]),
        "records": chance.choice([500, 2_000, 10_000, 50_000]),
    }
    if chance.random() < 0.3:
        rules["bytes"] = chance.choice(["256Ki", "2Mi"])
    if chance.random() < 0.3:
        rules["recordWindow"] = "1h"
    return rules
