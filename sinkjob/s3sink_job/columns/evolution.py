"""Changes of schemas that records bring along: what may widen, and what is refused.

Inferred columns of two types become text. Columns with declared types never do: a reader would see a number in one
object and text in the next.
"""

from __future__ import annotations

from typing import NoReturn

import pyarrow as pa

from s3sink_job.columns.types import Path, joined


class Incompatible(ValueError):
    """A field with a new type that shares no wider type with the known one."""

    def __init__(self, path: Path, known_type: pa.DataType, new_type: pa.DataType) -> None:
        super().__init__(f"field {'.'.join(path)!r} was {known_type} and is now {new_type}")
        self.path, self.known_type, self.new_type = path, known_type, new_type


def widened(known: pa.StructType, new: pa.StructType) -> pa.StructType:
    """The narrowest type that holds records of both. Either may lack fields. May raise `Incompatible`."""
    return joined(known, new, _refuse)


def _refuse(path: Path, known: pa.DataType, new: pa.DataType) -> NoReturn:
    raise Incompatible(path, known, new)
