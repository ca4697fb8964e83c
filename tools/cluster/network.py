"""The pods' network: each pod has a link to this machine, which forwards packets between pods only.

The node's address is on the loopback interface: it belongs to this machine alone, every pod reaches it through its
link, and it needs no kernel module. One nftables table holds the only rule: pods reach pods and this machine, and
nothing else.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tools.cluster.interface import ClusterFailed

NODE_IP = "10.250.0.1"
PODS = "10.244.0.0/24"
_TABLE = "s3sink_cluster"
_KUBE_PROXY = "kube-proxy"
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")

_RULES = f"""
table ip {_TABLE} {{
    chain forward {{
        type filter hook forward priority filter; policy accept;
        ip saddr {PODS} ip daddr != {PODS} reject
    }}
}}
"""


def forwarding() -> str:
    return _FORWARDING.read_text().strip()


def set_forwarding(value: str) -> None:
    if forwarding() != value:
        _FORWARDING.write_text(value)


def lay() -> None:
    """Sets the network up."""
    run("ip", "address", "add", f"{NODE_IP}/32", "dev", "lo")
    run("nft", "-f", "-", stdin=_RULES)
    set_forwarding("1")


def remove() -> None:
    """Removes all that `lay` and kube-proxy made. Links to pods disappear with the pods' network namespaces."""
    for address in _addresses():
        run("ip", "address", "delete", f"{NODE_IP}/32", "dev", address)
    for line in run("nft", "list", "tables").splitlines():
        # Each line reads "table <family> <name>".
        _, family, name = line.split()
        if name in (_TABLE, _KUBE_PROXY):
            run("nft", "delete", "table", family, name)


def cni_config(addresses: Path) -> str:
    """Links pods to this machine; `addresses` is the plugin's folder for the pods' addresses."""
    return json.dumps(
        {
            "cniVersion": "0.4.0",
            "name": "s3sink",
            "plugins": [
                {
                    "type": "ptp",
                    "ipam": {
                        "type": "host-local",
                        "dataDir": str(addresses),
                        "ranges": [[{"subnet": PODS}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                }
            ],
        }
    )


def run(*command: str, stdin: str | None = None) -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterFailed(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _addresses() -> list[str]:
    """The interfaces that have the node's address."""
    found = json.loads(run("ip", "-json", "address", "show") or "[]")
    return [
        interface["ifname"]
        for interface in found
        if any(address.get("local") == NODE_IP for address in interface.get("addr_info", []))
    ]
