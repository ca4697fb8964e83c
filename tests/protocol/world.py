"""A world in which drivers, the store and Kafka act one at a time, as a scheduler decides.

A driver runs in a thread of its own, but only while it holds the baton. At every request it hands the baton back, and
the scheduler decides which driver runs next and what happens to the request. The same choices give the same run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from s3sink_job.kafka.admin import KafkaUnavailable
from s3sink_job.kafka.slice_reader import JobFailed
from tests.protocol.letter_topic import ModelLetters
from tests.protocol.log import ModelKafka
from tests.protocol.store import ModelS3, Stored, conflict, refused
from tests.protocol.watchdog import Watchdog

URL = "http://model"


class Violation(AssertionError):
    """The protocol broke a promise."""


class Crash(BaseException):
    """kill -9: nothing in the driver may catch it."""


class Fate(Enum):
    DONE = "done"
    LOST = "lost on its way"
    UNANSWERED = "done, answer lost"
    LATE = "given up, arrives later"
    CONFLICT = "409"
    REFUSED = "412, whatever is there"
    CRASH_BEFORE = "crash before it"
    CRASH_AFTER = "crash after it"


READ_FATES = (Fate.DONE, Fate.LOST, Fate.CRASH_BEFORE)
WRITE_FATES = tuple(Fate)


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


class Choices(Protocol):
    def pick(self, count: int) -> int:
        """A number from 0 to count - 1. Smaller numbers are simpler: 0 is the normal case."""
        ...


class Process:
    """A driver in its thread. `waits` names the request at which it handed the baton back."""

    def __init__(self, world: World, name: str, main: Callable[[Process], None]) -> None:
        self.name = name
        self.alive = True
        self.waits = ""
        self.writes = False
        self.fate = Fate.DONE
        self.well = False
        """Whether its last step ended without an error."""
        self.writer = ""
        self.go = _taken()
        self.world = world
        self._main = main
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self.world.baton.acquire()

    def turn(self, fate: Fate) -> None:
        """Lets the driver run until its next request."""
        self.fate = fate
        self.go.release()
        self.world.baton.acquire()

    def end(self) -> None:
        while self.alive:
            self.turn(Fate.CRASH_BEFORE)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._main(self)
        except Crash:
            pass
        except BaseException as error:
            self.world.blame(f"{self.name} died of {type(error).__name__}: {error}", error)
        finally:
            self.alive = False
            self.world.baton.release()


@dataclass(frozen=True)
class Reset:
    """As in a manifest."""

    nonce: str
    position: str = "Earliest"


@dataclass(frozen=True)
class Applied:
    """The resource as it was applied once. Each change is a generation."""

    generation: int = 1
    reset: Reset | None = None
    run: str = ""
    """Of a full refresh: its id. Empty for `mode: Append`."""


class World:
    def __init__(
        self,
        *,
        conditional: bool = True,
        twice: str = "NoSuchUpload",
        partitions: int = 1,
        opaque: bool = False,
        forgets: bool = False,
        bad_records: str = "Skip",
    ) -> None:
        self.bad_records = bad_records
        self.kafka = ModelKafka("t", partitions)
        self.store_kind = {"conditional": conditional, "twice": twice, "opaque": opaque, "forgets": forgets}
        self.conditional = conditional and not forgets
        """Whether the store keeps all that exactly once needs."""
        self.watchdog = Watchdog(conditional=self.conditional, blame=self.blame)
        self.store = ModelS3(self.watchdog.changed, **self.store_kind)  # type: ignore[arg-type]
        self.store.on_delete = self.watchdog.deleted
        self.letters = ModelLetters(self.watchdog.sent)
        self.applied = Applied()
        """What the manifest says for drivers that start from now on."""
        self.earlier: list[Applied] = []
        self.now = 1_000_000.0
        self.removed: dict[str, Stored] = {}
        """Objects that readers loaded and deleted."""
        self.late: list[tuple[str, Callable[[], Any]]] = []
        self.trace: list[str] = []
        self.baton = _taken()
        self._blamed: str | None = None
        self._cause: BaseException | None = None

    def copy(self) -> World:
        """What is in the bucket and in Kafka, without the drivers."""
        made = copy(self)
        made.trace, made.late = list(self.trace), []
        made.kafka = deepcopy(self.kafka)
        made.watchdog = self.watchdog.copy(made.blame)
        made.store = self.store.copy(made.watchdog.changed)
        made.store.on_delete = made.watchdog.deleted
        made.letters = self.letters.copy(made.watchdog.sent)
        return made

    @property
    def reset(self) -> Reset | None:
        return self.applied.reset

    @reset.setter
    def reset(self, reset: Reset | None) -> None:
        self.apply(reset)

    def apply(self, reset: Reset | None, run: str = "") -> None:
        self.earlier.append(self.applied)
        self.applied = Applied(self.applied.generation + 1, reset, run)

    def note(self, text: str) -> None:
        self.trace.append(text)

    def blame(self, text: str, cause: BaseException | None = None) -> None:
        """Keeps the first broken promise; `check` raises it where the test can see it."""
        if self._blamed is None:
            self._blamed, self._cause = text, cause
        self.note(f"!! {text}")

    def check(self) -> None:
        if self._blamed is not None:
            raise Violation("\n".join([self._blamed, "what happened:", *self.trace])) from self._cause

    def arrive(self, index: int) -> None:
        """A request that its driver gave up reaches the store."""
        name, call = self.late.pop(index)
        self.note(f"-- late: {name}")
        try:
            call()
        except ClientError as refusal:
            self.note(f"   refused: {refusal.response['Error']['Code']}")

    def request(self, line: Line, name: str, call: Callable[[], Any], writes: bool) -> Any:
        fate = line.fate_of(name, writes)
        self.note(f"{line.name}: {name}: {fate.value}")
        match fate:
            case Fate.LOST:
                raise ConnectTimeoutError(endpoint_url=URL)
            case Fate.LATE:
                self.late.append((f"{line.name}: {name}", call))
                raise ReadTimeoutError(endpoint_url=URL)
            case Fate.CONFLICT:
                raise conflict()
            case Fate.REFUSED:
                raise refused()
            case Fate.CRASH_BEFORE:
                raise Crash
        try:
            answer = call()
        except ClientError as refusal:
            self.note(f"   refused: {refusal.response['Error']['Code']}")
            if fate is Fate.DONE:
                raise
            answer = None
        if fate is Fate.UNANSWERED:
            raise ReadTimeoutError(endpoint_url=URL)
        if fate is Fate.CRASH_AFTER:
            raise Crash
        return answer

    def look(self, line: Line, name: str, call: Callable[[], Any]) -> Any:
        """A request to Kafka, which changes nothing there."""
        fate = line.fate_of(name, False)
        self.note(f"{line.name}: {name}: {fate.value}")
        if fate is Fate.CRASH_BEFORE:
            raise Crash
        if fate is Fate.LOST:
            raise KafkaUnavailable(f"{name}: lost")
        try:
            return call()
        except KeyError as missing:
            raise KafkaUnavailable(f"{name}: no partition {missing}") from None

    def change(self, line: Line, name: str, call: Callable[[], Any]) -> Any:
        """A request to Kafka that changes something there."""
        fate = line.fate_of(name, True)
        self.note(f"{line.name}: {name}: {fate.value}")
        match fate:
            case Fate.CRASH_BEFORE:
                raise Crash
            case Fate.LATE:
                self.late.append((f"{line.name}: {name}", call))
        if fate in {Fate.LOST, Fate.LATE, Fate.CONFLICT, Fate.REFUSED}:
            raise KafkaUnavailable(f"{name}: {fate.value}")
        answer = call()
        if fate is Fate.UNANSWERED:
            raise KafkaUnavailable(f"{name}: {fate.value}")
        if fate is Fate.CRASH_AFTER:
            raise Crash
        return answer

    def read(self, line: Line, name: str, call: Callable[[], Any]) -> Any:
        """A task's fetch from Kafka."""
        try:
            return self.look(line, name, call)
        except KafkaUnavailable as error:
            raise JobFailed(str(error)) from None


class Line(Protocol):
    """The way of a driver's requests: through the scheduler, or directly."""

    name: str

    def fate_of(self, name: str, writes: bool) -> Fate: ...


class Scheduled:
    """For a driver in a thread: every request waits for the scheduler."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.name = process.name

    def fate_of(self, name: str, writes: bool) -> Fate:
        process = self.process
        process.waits, process.writes = name, writes
        process.world.baton.release()
        process.go.acquire()
        return process.fate


class Direct:
    """For a driver that runs alone, in the test's own thread. `fates` decides what goes wrong."""

    def __init__(self, name: str, fates: Callable[[str, bool], Fate] = lambda name, writes: Fate.DONE) -> None:
        self.name = name
        self.fate_of = fates
