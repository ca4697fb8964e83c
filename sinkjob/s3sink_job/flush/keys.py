"""Object keys. Two objects can never get one key: folders hold topic and partition, names the first offset.

Ranges of one generation never overlap, a generation is never used again, and a topic's name holds only
characters that need no escaping, so the folder is as unique as the topic.
"""

from __future__ import annotations

from s3sink_job.errors import FinalError

OFFSET_DIGITS = 19
MAX_KEY_BYTES = 1024


def object_key(
    prefix: str, topic: str, generation: int, partition: int, first: int, extension: str, mark: str = ""
) -> str:
    """`mark` tells apart what two drivers may both write where the store cannot fence one of them."""
    name = f"{first:0{OFFSET_DIGITS}d}"
    if generation > 1:
        name += f"-g{generation}"
    if mark:
        name += f"-{mark}"
    key = "/".join(part for part in (prefix, topic, str(partition), name + extension) if part)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise FinalError(
            f"object key {key!r} is longer than {MAX_KEY_BYTES} bytes: shorten spec.destination.prefix",
            reason="KeyTooLong",
        )
    return key
