"""A sink as a file for Arrow's writers."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.formats.compression import ByteSink


def sink_file(sink: ByteSink) -> pa.NativeFile:
    return pa.PythonFile(_Writable(sink), mode="w")


class _Writable:
    """The methods of a file that Arrow's writers call."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self.closed = False

    def write(self, data: bytes | pa.Buffer) -> int:
        # A copy: Arrow may use the buffer again.
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
