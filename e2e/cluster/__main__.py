"""The cluster from a shell: build, up, load-image, kubeconfig, down."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from e2e.cluster import BareCluster, ClusterFailed, binaries
from e2e.image.host import SetupFailed


def main() -> int:
    arguments = _parser().parse_args()
    cluster = BareCluster(arguments.tier)
    try:
        match arguments.command:
            case "build":
                binaries.build_all()
            case "up":
                cluster.up()
                print(f"export KUBECONFIG={cluster.kubeconfig}")
                print(f"export KUBECACHEDIR={cluster.kubectl_cache}")
                print(f"export PATH={cluster.programs}:$PATH")
            case "load-image":
                print(cluster.load_image(arguments.archive))
            case "kubeconfig":
                if not cluster.is_up:
                    raise ClusterFailed(f"no cluster of the tier `{arguments.tier}` is up")
                print(cluster.kubeconfig)
            case "down":
                cluster.down()
    except SetupFailed as failure:
        print(f"cluster: {failure}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster", description="A real Kubernetes on this machine")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build Kubernetes' programs now, so that `up` need not")
    up = commands.add_parser("up", help="bring it up and print what to export in a shell")
    load = commands.add_parser("load-image", help="give an OCI archive to the node and print the image's reference")
    load.add_argument("archive", type=Path, metavar="FILE")
    kubeconfig = commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    down = commands.add_parser("down", help="stop it and remove every trace")
    for command in (up, kubeconfig, down):
        command.add_argument("--tier", choices=["control", "all"], default="all")
    for command in (build, load):
        command.set_defaults(tier="all")
    return parser


if __name__ == "__main__":
    sys.exit(main())
