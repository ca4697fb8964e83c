"""Writes lines: each row's bytes, then a line break."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.formats.compression import Stream


class LineWriter:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._settled = self._since = 0
        self._ratio = 1.0

    @property
    def held(self) -> int:
        return self._stream.held

    @property
    def size(self) -> int:
        """Exact up to the last `settle`, then estimated by the compression ratio, but never less than was sent."""
        return max(self._stream.size, self._settled + int(self._since * self._ratio))

    def takes(self, rows: pa.RecordBatch) -> bool:
        return True

    def write(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows == 0:
            return
        lines = rows.column("line")
        whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
        data = memoryview(pc.binary_join(whole, b"\n")[0].as_buffer())
        self._stream.write(data)
        self._stream.write(b"\n")
        self._since += len(data) + 1

    def settle(self) -> None:
        self._stream.settle()
        if self._since:
            self._ratio = (self._stream.size - self._settled) / self._since
        self._settled, self._since = self._stream.size, 0

    def close(self) -> tuple[()]:
        self._stream.close()
        return ()

    def abandon(self) -> None:
        return
