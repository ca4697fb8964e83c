"""Formats of lines (JSON lines, Text): each row's bytes, then a line break."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.formats.compression import Stream


class LineWriter:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows == 0:
            return
        lines = rows.column("line")
        whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
        self._stream.write(memoryview(pc.binary_join(whole, b"\n")[0].as_buffer()))
        self._stream.write(b"\n")

    def close(self) -> None:
        self._stream.close()
