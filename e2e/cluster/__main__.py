"""The cluster from a shell: build, up, load-image, kubeconfig, down."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from e2e.cluster import BareCluster, Cluster, ClusterFailed, binaries
from e2e.cluster.interface import PROVIDERS, choose
from e2e.cluster.kind import KindCluster, kind_program
from e2e.image.host import SetupFailed


def main() -> int:
    arguments = _parser().parse_args()
    try:
        cluster = _cluster(arguments)
        match arguments.command:
            case "build":
                _build(cluster)
            case "up":
                cluster.up()
                print(f"export KUBECONFIG={cluster.kubeconfig}")
                print(f"export KUBECACHEDIR={cluster.kubectl_cache}")
                print(f"export PATH={cluster.programs}:$PATH")
            case "load-image":
                print(cluster.load_image(arguments.archive))
            case "kubeconfig":
                if not cluster.is_up:
                    raise ClusterFailed("it is not up")
                print(cluster.kubeconfig)
            case "down":
                cluster.down()
    except SetupFailed as failure:
        print(f"cluster: {failure}", file=sys.stderr)
        return 1
    return 0


def _cluster(arguments: argparse.Namespace) -> Cluster:
    if arguments.tier == "all":
        return choose(arguments.provider)
    if arguments.provider == "kind":
        raise ClusterFailed("the tier `control` is the provider `bare`'s; kind has whole clusters only")
    return BareCluster(arguments.tier)


def _build(cluster: Cluster) -> None:
    match cluster:
        case KindCluster():
            kind_program()
        case BareCluster(tier="control"):
            binaries.kubernetes_dir()
        case _:
            binaries.build_all()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster", description="A real Kubernetes on this machine")
    parser.add_argument("--provider", choices=PROVIDERS, help="default: kind where a Docker daemon answers, else bare")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the provider's programs now, so that `up` need not")
    up = commands.add_parser("up", help="bring it up and print what to export in a shell")
    load = commands.add_parser("load-image", help="give an OCI archive to the node and print the image's reference")
    load.add_argument("archive", type=Path, metavar="FILE")
    kubeconfig = commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    down = commands.add_parser("down", help="stop it and remove every trace")
    for command in (build, up, kubeconfig, down):
        command.add_argument("--tier", choices=["control", "all"], default="all")
    load.set_defaults(tier="all")
    return parser


if __name__ == "__main__":
    sys.exit(main())
