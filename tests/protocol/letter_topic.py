"""A model of the topic of dead letters, with Kafka's transactions: the client below the real `LetterPublisher`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from s3sink_job.kafka.admin import KafkaUnavailable
from s3sink_job.kafka.letter_topic import Letter

if TYPE_CHECKING:
    from tests.protocol.world import Line, World

PLACE = ("s3sink.generation", "__connect.errors.partition", "__connect.errors.offset")
Place = tuple[int, int, int]


class ModelLetters:
    """`on_commit` is called for every transaction that is committed: its flush, and the places of its letters."""

    def __init__(self, on_commit: Callable[[str, list[Place]], None]) -> None:
        self.on_commit = on_commit
        self.epoch = 0
        self.flush = ""

    def copy(self, on_commit: Callable[[str, list[Place]], None]) -> ModelLetters:
        made = copy(self)
        made.on_commit = on_commit
        return made

    def begin(self) -> int:
        self.epoch += 1
        return self.epoch

    def commit(self, epoch: int, flush: str, places: list[Place]) -> bool:
        """False if another session has begun since."""
        if epoch != self.epoch:
            return False
        self.flush = flush
        self.on_commit(flush, places)
        return True


@dataclass
class ModelLetterTopic:
    world: World
    line: Line
    topic: str

    def create_if_missing(self, replication: int | None) -> None:
        return

    def check_write(self) -> None:
        return

    def begin(self) -> ModelSession:
        letters = self.world.letters
        return ModelSession(self, self.world.change(self.line, "begin letters", letters.begin))


@dataclass
class ModelSession:
    at: ModelLetterTopic
    epoch: int

    def last_flush(self) -> str:
        world = self.at.world
        return str(world.look(self.at.line, "last flush of letters", lambda: world.letters.flush))

    def send(self, letters: Iterable[Letter], flush: str, number: int) -> None:
        places = [_place(letter) for letter in letters]
        world = self.at.world

        def commit() -> Any:
            return world.letters.commit(self.epoch, flush, places)

        if not world.change(self.at.line, f"commit letters of {flush}", commit):
            raise KafkaUnavailable("fenced")

    def close(self) -> None:
        return


def _place(letter: Letter) -> Place:
    headers = dict(letter.headers)
    generation, partition, offset = (int(headers[name] or b"") for name in PLACE)
    return generation, partition, offset
