"""The cluster from a shell: build, up, load-image, kubeconfig, down."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.cluster import BareCluster, Cluster, ClusterFailed, binaries
from tools.cluster.interface import PROVIDERS, choose
from tools.cluster.kind import KindCluster, kind_program
from tools.host import SetupFailed


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
                    raise ClusterFailed("no cluster is up: run `python -m tools.cluster up` first")
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
        raise ClusterFailed("only the provider `bare` has the tier `control`; kind starts whole clusters")
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
    parser = argparse.ArgumentParser(prog="python -m tools.cluster", description="A real Kubernetes on this machine")
    parser.add_argument("--provider", choices=PROVIDERS, help="default: kind where a Docker daemon answers, else bare")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the provider's programs, and start nothing")
    up = commands.add_parser("up", help="start the cluster and print what to export in a shell")
    load = commands.add_parser("load-image", help="load an OCI archive into the node and print the image's reference")
    load.add_argument("archive", type=Path, metavar="FILE")
    kubeconfig = commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    down = commands.add_parser("down", help="stop the cluster and remove every trace of it")
    for command in (build, up, kubeconfig, down):
        command.add_argument("--tier", choices=["control", "all"], default="all")
    load.set_defaults(tier="all")
    return parser


if __name__ == "__main__":
    sys.exit(main())
