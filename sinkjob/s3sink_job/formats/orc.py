"""ORC. All rows that are encoded at one time become whole stripes, so that nothing of them stays in memory."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from pyarrow import orc

from s3sink_job.encoding import Encoding
from s3sink_job.formats.compression import ByteSink
from s3sink_job.formats.files import sink_file
from s3sink_job.formats.pending import FixedObject

CODECS = {"None": "uncompressed", "Snappy": "snappy", "Lz4": "lz4", "Zstd": "zstd", "Deflate": "zlib"}
ENOUGH = 64 * 2**20
STRIPE_ROWS = 65_536
FOOTER_BYTES = 1024
ZONES = Path("/usr/share/zoneinfo")


class OrcObject(FixedObject):
    def __init__(self, encoding: Encoding, sink: ByteSink) -> None:
        super().__init__(lambda record: OrcEncoder(encoding, sink, record), ENOUGH)


class OrcEncoder:
    held = 0

    def __init__(self, encoding: Encoding, sink: ByteSink, record: pa.StructType) -> None:
        find_time_zones()
        self._sink = sink
        self._gathered = _Gathered()
        # A stripe is full when it has any size at all: the writer looks after each batch that it takes.
        self._writer = orc.ORCWriter(
            sink_file(self._gathered), compression=CODECS[encoding.codec], stripe_size=1, batch_size=STRIPE_ROWS
        )
        self._sent = 0

    @property
    def size(self) -> int:
        return self._sent + FOOTER_BYTES

    def write(self, rows: pa.Table) -> None:
        for batch in rows.combine_chunks().to_batches(max_chunksize=STRIPE_ROWS):
            # Arrow's writer looks for the children of a part of a column at the column's start.
            whole = [pa.concat_arrays([column]) for column in batch.columns]
            self._writer.write(pa.Table.from_arrays(whole, schema=batch.schema))
            self._send()

    def settle(self) -> None:
        return

    def close(self) -> None:
        self._writer.close()
        self._send()

    def _send(self) -> None:
        for data in self._gathered.take():
            self._sink.write(data)
            self._sent += len(data)


class _Gathered:
    """What Arrow's writer wrote until it is sent on: an error in the midst of its work would end the process."""

    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = []

    def write(self, data: bytes | memoryview) -> int:
        self._parts.append(data)
        return len(data)

    def take(self) -> list[bytes | memoryview]:
        parts, self._parts = self._parts, []
        return parts


def find_time_zones() -> None:
    """The library wants a file of the time zone database even for UTC; not every system has one."""
    if "TZDIR" not in os.environ and not ZONES.exists() and (package := find_spec("tzdata")) and package.origin:
        os.environ["TZDIR"] = str(Path(package.origin).parent / "zoneinfo")
