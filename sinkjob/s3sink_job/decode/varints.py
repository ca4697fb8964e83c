"""Numbers of variable length, as Avro and Protobuf have them: seven bits in each byte, the lowest first."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from s3sink_job.decode.record_bytes import Bytes, Ints, Mask

Words: TypeAlias = npt.NDArray[np.uint64]
LONGEST = 10
"""Bytes of a number of 64 bits."""
U = np.uint64
LAST_BYTES = U(0x8080808080808080)
SEVEN_BITS = U(0x7F7F7F7F7F7F7F7F)
STEPS = (
    (U(0x7F007F007F007F00), U(0x007F007F007F007F), U(1)),
    (U(0x3FFF00003FFF0000), U(0x00003FFF00003FFF), U(2)),
    (U(0x0FFFFFFF00000000), U(0x000000000FFFFFFF), U(4)),
)
"""Each step moves groups of 7, 14 and 28 bits together."""


def varints(data: Bytes, words: Words, at: Ints) -> tuple[Words, Ints, Ints]:
    """The numbers at these positions, their lengths, and the places of those with more than 64 bits.

    `words` has the eight bytes that begin at each byte: for most numbers one look at them is enough.
    """
    word = words[at]
    ends = ~word & LAST_BYTES
    below = (ends & (~ends + U(1))) - U(1)
    length = (np.bitwise_count(below).astype(np.int64) + 1) >> 3
    word &= below & SEVEN_BITS
    for upper, lower, shift in STEPS:
        word = (word & upper) >> shift | word & lower
    longer = np.flatnonzero(ends == 0)
    if not len(longer):
        return word, length, longer
    word[longer], length[longer], too_long = _long_numbers(data, at[longer])
    return word, length, longer[too_long]


def _long_numbers(data: Bytes, at: Ints) -> tuple[Words, Ints, Mask]:
    """Numbers of more than eight bytes."""
    going = np.ones(len(at), np.bool_)
    word, length = np.zeros(len(at), np.uint64), np.zeros(len(at), np.int64)
    for byte in range(LONGEST):
        found = data[at + byte].astype(np.uint64)
        word |= np.where(going, (found & U(0x7F)) << U(7 * byte), U(0))
        length += going
        going &= found >= 0x80
    return word, length, going | ((length == LONGEST) & (found > 1))
