"""Values as raw bytes, whatever their format: no record is bad. A tombstone is an empty value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.decode.decoder import DecodedBatch


def raw_values(decoded: DecodedBatch) -> pa.RecordBatch:
    value = pc.fill_null(decoded.batch.column("value").cast(pa.binary()), b"")
    return pa.RecordBatch.from_arrays([value], ["value"])
