"""A sink as the file that Arrow's writers ask for."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.formats.compression import ByteSink


def sink_file(sink: ByteSink) -> pa.NativeFile:
    return pa.PythonFile(_Writable(sink), mode="w")


class _Writable:
    """As much of a file as Arrow asks of one it writes to."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self.closed = False

    def write(self, data: bytes | pa.Buffer) -> int:
        # Arrow may use a buffer again once it is written.
        return self._sink.write(bytes(data))

    def flush(self) -> None:
        return

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
