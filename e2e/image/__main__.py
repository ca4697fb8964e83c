"""The image from a shell: `python -m e2e.image build` prints the path of the archive."""

from __future__ import annotations

import argparse
import sys
import time

from e2e.image.build import build_image
from e2e.image.host import SetupFailed, say


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.image", description="The product's image, without Docker")
    parser.add_argument("command", choices=["build"], help="make the OCI archive of this tree and print its path")
    parser.parse_args()
    started = time.monotonic()
    try:
        image = build_image()
    except SetupFailed as failure:
        print(f"image: {failure}", file=sys.stderr)
        return 1
    size = image.archive.stat().st_size / 1e6
    say(f"{image.reference}: {size:.0f} MB in {time.monotonic() - started:.0f} s")
    print(image.archive)
    return 0


if __name__ == "__main__":
    sys.exit(main())
