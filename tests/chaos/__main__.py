"""`make chaos`: a sink on real parts with random faults; exit code 0 if every record is there exactly once."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from tests.chaos.report import line, tables
from tests.chaos.run import Run
from tools.parts.class_archive import class_archive


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="decides format, layout, producers and faults; default: random")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long faults happen; default: 10")
    return parser.parse_args()


def main() -> int:
    asked = options()
    seed = random.randrange(1, 100_000) if asked.seed is None else asked.seed
    signal.signal(signal.SIGTERM, _stop)
    if (archive := class_archive()).exists():
        os.environ["S3SINK_CLASSES"] = str(archive)
    folder = Path(tempfile.mkdtemp(prefix=f"s3sink-chaos-{seed}-"))
    keep = False
    try:
        outcome = Run(seed, asked.minutes * 60, folder, _say).go()
        keep = bool(outcome.wrong)
    except KeyboardInterrupt:
        _say("stopped; nothing was proved")
        return 130
    finally:
        for path in folder.glob("*.tmp") if keep else [folder]:
            shutil.rmtree(path, ignore_errors=True)
    _say(f"\n{tables(outcome)}\n{line(outcome)}")
    if outcome.wrong:
        _say("\nFAILED:\n" + "\n".join(outcome.wrong))
        _say(f"\nlogs, the bucket and both readings are in {folder}")
        _say(f"again: make chaos SEED={seed} MINUTES={asked.minutes:g}")
    return 1 if outcome.wrong else 0


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
