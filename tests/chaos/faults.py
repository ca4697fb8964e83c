"""A kind of fault: a name and a function, which also undoes the fault: afterwards all parts run again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.chaos.supervisor import Supervisor
from tests.chaos.world import World


class NoVictim(Exception):
    """The fault found no target; it is tried again later."""


@dataclass
class Scene:
    """The targets of faults."""

    world: World
    drivers: Supervisor
    over: threading.Event = field(default_factory=threading.Event)
    """Set at the end of the run: all waiting ends."""
    store: threading.Lock = field(default_factory=threading.Lock)
    """Its holder alone may change the store's answers."""


@dataclass(frozen=True)
class Fault:
    name: str
    do: Callable[[Scene, Random], str]
    """Makes the fault happen and returns a description of it."""
