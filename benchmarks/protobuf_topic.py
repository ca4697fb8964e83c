"""The records of `topic.py` as Protobuf, in the wire format of a schema registry: same fields, same values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from google.protobuf.message_factory import GetMessageClass

from benchmarks.avro_topic import unsigned
from benchmarks.topic import PARTITIONS, STOCK, at, fields, place
from s3sink_job.decode.proto_files import link, message_at
from s3sink_job.decode.writer_schemas import WriterSchema

SCHEMA = """
syntax = "proto3";
message Event {
  int64 id = 1;
  string at = 2;
  string kind = 3;
  string session = 4;
  Customer customer = 5;
  double amount = 6;
  double score = 7;
  int64 quantity = 8;
  bool member = 9;
  string title = 10;
}
message Customer { int64 id = 1; string country = 2; }
"""
FIRST_MESSAGE = b"\x00"
ID, AT = b"\x08", b"\x12\x18"
"""Tags; a time has 24 bytes."""


class ProtobufEvents:
    """The same numbers and values as `Events` with the same seed."""

    def __init__(self, register: Callable[[str], int], seed: int = 7, stock: int = STOCK) -> None:
        made, chance = GetMessageClass(message_at(link(WriterSchema("PROTOBUF", SCHEMA)), (0,))), random.Random(seed)
        self._tails = [made(**fields(chance)).SerializeToString() for _ in range(stock)]
        self._frame = b"\x00" + register(SCHEMA).to_bytes(4, "big") + FIRST_MESSAGE

    def values(self, partition: int, start: int, count: int) -> Iterator[bytes]:
        tails, head = self._tails, self._frame + ID
        for n in range(start, start + count):
            number = n * PARTITIONS + partition
            yield b"%b%b%b%b%b" % (head, unsigned(number), AT, at(number), tails[place(n, partition, len(tails))])
