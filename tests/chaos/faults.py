"""What a kind of fault is: a name, and how it is done. Doing includes undoing: afterwards all parts run again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.chaos.supervisor import Supervisor
from tests.chaos.world import World


class NoVictim(Exception):
    """The fault did not happen, since there was nothing to hit; it is tried again later."""


@dataclass
class Scene:
    """What faults happen to."""

    world: World
    drivers: Supervisor
    over: threading.Event = field(default_factory=threading.Event)
    """Set at the end of the run: whoever waits for something stops waiting."""
    store: threading.Lock = field(default_factory=threading.Lock)
    """Who holds it has the store's answers for himself."""


@dataclass(frozen=True)
class Fault:
    name: str
    do: Callable[[Scene, Random], str]
    """Makes it happen and returns what it did, in words."""
