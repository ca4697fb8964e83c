"""The image from a shell: `build` prints the path of the archive, `sbom` what is in it."""

from __future__ import annotations

import argparse
import sys
import time

from e2e.image.build import build_image
from e2e.image.host import SetupFailed, say
from e2e.image.sbom import sbom
from e2e.image.sizes import sizes, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.image", description="The product's image, without Docker")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="make the OCI archive of this tree, tell its size and print its path")
    commands.add_parser("sbom", help="print a CycloneDX document (JSON) of all that is in the image")
    arguments = parser.parse_args()
    try:
        started = time.monotonic()
        image = build_image()
        say(f"{image.reference} in {time.monotonic() - started:.0f} s")
        match arguments.command:
            case "build":
                print(table(sizes(image)), file=sys.stderr)
                print(image.archive)
            case "sbom":
                name, _, release = image.reference.partition(":")
                print(sbom(image.archive, name, release))
    except SetupFailed as failure:
        print(f"image: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
