"""Faults of the store's answers, made by the proxy: at one step of the protocol, for a few requests."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random

from tests.chaos.choices import PREFIX
from tests.chaos.faults import Fault, NoVictim, Scene
from tools.parts.proxy import (
    Action,
    DropResponse,
    Late,
    Predicate,
    Refuse,
    Reset,
    Slow,
    Status,
    Truncate,
    request_is,
)

STEPS: dict[str, Predicate] = {
    "create": request_is("POST", f"/{PREFIX}/", r"\buploads\b"),
    "part": request_is("PUT", f"/{PREFIX}/", r"\bpartNumber="),
    "complete": request_is("POST", f"/{PREFIX}/", r"\buploadId="),
    "object": request_is("PUT", f"/{PREFIX}/", "^$"),
    "manifest": request_is("PUT", r"/flushes/[^/]+\.json$"),
    "swap": request_is("PUT", r"/state\.json$"),
    "read": request_is("GET", r"/state\.json$"),
}
UPLOADS, SINGLES = {"create", "part", "complete"}, {"object"}
"""Objects with one record are plain PUTs, all others are multipart uploads."""
WRITES = ("create", "part", "complete", "object", "manifest", "swap")
CONDITIONAL = ("complete", "object", "swap", "manifest")

MAY_PASS = ("RequestTimeout", "SlowDown", "ThrottlingException", "IncompleteBody", "BadDigest")
TIMES = (1, 1, 2, 3, 6, 12)
"""How many requests in a row meet the fault; sometimes more than the retries of one request."""
MET_WITHIN = 30.0


@dataclass(frozen=True)
class Answers:
    name: str
    actions: tuple[Action, ...]
    steps: tuple[str, ...] = WRITES
    times: tuple[int, ...] = TIMES

    def do(self, scene: Scene, chance: Random) -> str:
        other = UPLOADS if scene.world.choices.format == "Bytes" else SINGLES
        step = chance.choice([step for step in self.steps if step not in other])
        action, times = chance.choice(self.actions), chance.choice(self.times)
        with scene.store:
            hits = _meet(scene, step, action, times)
        return f"{hits} times at {step}{_words(action)}"


def _meet(scene: Scene, step: str, action: Action, times: int) -> int:
    """Breaks requests of a step until enough have met the fault, or time is over."""
    proxy = scene.world.proxy
    rules = [proxy.on(STEPS[step], action, times=times)]
    if step == "read":
        # A driver reads the state only after a swap with an unknown outcome.
        rules.append(proxy.on(STEPS["swap"], DropResponse(), times=1))
    deadline = time.monotonic() + MET_WITHIN
    while rules[0].hits < times and time.monotonic() < deadline and not scene.over.wait(0.05):
        continue
    for rule in rules:
        proxy.remove(rule)
    if not rules[0].hits:
        raise NoVictim
    return rules[0].hits


def _words(action: Action) -> str:
    match action:
        case Status(_, code, after):
            return f": {code}{' after the effect' if after else ''}"
        case Reset(after) if after:
            return " after the effect"
        case DropResponse():
            return " after the effect"
        case Late(seconds) | Slow(seconds):
            return f", {seconds} s"
    return ""


def _both(code: int, name: str) -> tuple[Action, ...]:
    return Status(code, name), Status(code, name, after=True)


KINDS = (
    Answers("500 before the effect", (Status(500, "InternalError"),)),
    Answers("503 before the effect", (Status(503, "SlowDown"), Status(503, "ServiceUnavailable"))),
    Answers("500 after the effect", (Status(500, "InternalError", after=True),)),
    Answers("503 after the effect", (Status(503, "SlowDown", after=True),)),
    Answers("answer lost", (DropResponse(), Refuse())),
    Answers("connection reset", (Reset(), Reset(after=True))),
    Answers("request arrives late", (Late(0.5), Late(2))),
    Answers("slow body", (Slow(2), Slow(6)), times=(1, 2, 3)),
    Answers("truncated answer", (Truncate(),), steps=("create", "complete", "read")),
    Answers("409", (Status(409, "ConditionalRequestConflict"), Status(409, "OperationAborted")), CONDITIONAL),
    Answers("412", _both(412, "PreconditionFailed"), CONDITIONAL),
    Answers("400 that may pass", tuple(Status(400, code) for code in MAY_PASS)),
    # After it the driver waits half a minute and goes on by itself.
    Answers("400 for good", (Status(400, "InvalidRequest"),), times=(1,)),
)

STORE_FAULTS = tuple(Fault(kind.name, kind.do) for kind in KINDS)
