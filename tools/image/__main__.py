"""The command line: `build` prints the path of the archive, `sbom` its bill of materials."""

from __future__ import annotations

import argparse
import sys
import time

from tools.host import SetupFailed, say
from tools.image.build import build_image
from tools.image.sbom import sbom
from tools.image.sizes import sizes, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.image", description="The product's image, without Docker")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the OCI archive of this tree; print its size and its path")
    commands.add_parser("sbom", help="print the bill of materials of the image, as CycloneDX JSON")
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
