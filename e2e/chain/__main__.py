"""All tests of the chain, two at a time where they do not disturb each other: `python -m e2e.chain`.

One cluster and one operator serve them all. Options for pytest go into PYTEST_ADDOPTS.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path

from e2e.chain.parts import Parts
from e2e.chain.release import STANDING, standing
from e2e.cluster import Cluster
from e2e.cluster.interface import choose
from e2e.image.build import build_image
from e2e.image.host import SetupFailed, say

_CHAIN = Path(__file__).parent
_CLUSTERS = _CHAIN / "cluster"
"""Tests that bring clusters up and down themselves."""


def main() -> int:
    parts = Parts()
    try:
        _run_all(parts, choose())
    except SetupFailed as failure:
        print(f"chain: {failure}", file=sys.stderr)
        return 1
    say(f"end to end: FAILED, {' and '.join(parts.failed)}" if parts.failed else "end to end: all passed")
    return 1 if parts.failed else 0


def _run_all(parts: Parts, cluster: Cluster) -> None:
    image = build_image()
    parts.run("clusters", str(_CLUSTERS))
    with nullcontext() if cluster.is_up else cluster:
        reference = cluster.load_image(image.archive)
        with standing(cluster, reference):
            os.environ[STANDING] = reference
            here = (str(_CHAIN), f"--ignore={_CLUSTERS}")
            parts.run("tests two at a time", *here, "-m", "not alone", "-n", "2")
            parts.run("tests one by one", *here, "-m", "alone")


if __name__ == "__main__":
    sys.exit(main())
