"""Settings of the node's programs. Most of them keep a program's files in the cluster's folder.

Some are for unusual machines and harmless elsewhere: a root user that cannot lower `oom_score_adj`, cgroup v1, swap.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.cluster.network import NODE_IP, PODS

NODE_NAME = "node"
PAUSE_IMAGE = "localhost/pause:1"
CGROUP = "s3sink"
"""The control group of all pods, so that clean-up finds all of them and no others."""
DNS_READY = "127.0.0.1:18181"


def containerd_toml(folder: Path, socket: Path, cni_config: Path, cni_plugins: Path) -> str:
    return f"""\
version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
oom_score = 0
disabled_plugins = [{", ".join(f'"io.containerd.{plugin}"' for plugin in _UNUSED)}]

[grpc]
address = "{socket}"

[ttrpc]
address = "{socket}.ttrpc"

[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/containerd-opt"

[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = "{PAUSE_IMAGE}"
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni_plugins}"
conf_dir = "{cni_config}"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


_UNUSED = ["snapshotter.v1.aufs", "snapshotter.v1.btrfs", "snapshotter.v1.devmapper", "snapshotter.v1.zfs"]


def kubelet(folder: Path, socket: Path, ca: Path, certificate: Path, key: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_IP,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(ca)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificate),
        "tlsPrivateKeyFile": str(key),
        "containerRuntimeEndpoint": f"unix://{socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        # The network has its own rules, in nftables.
        "makeIPTablesUtilChains": False,
        "clusterDNS": [NODE_IP],
        "clusterDomain": "cluster.local",
        "resolvConf": str(folder / "resolv.conf"),
        "podLogsDir": str(folder / "pods"),
        "volumePluginDir": str(folder / "volume-plugins"),
        "healthzBindAddress": "127.0.0.1",
        # Images come only from `load_image` and cannot be pulled again: never collect them.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "24000h",
        # Tests wait for pods: shorter intervals than the default.
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
    }


def kube_proxy(kubeconfig: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        # The mode that needs the fewest features of the kernel.
        "mode": "nftables",
        "clusterCIDR": PODS,
        "hostnameOverride": NODE_NAME,
        "oomScoreAdj": 0,
        # 0: do not change the machine's limits.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
    }


def corefile(kubeconfig: Path) -> str:
    """Resolves names of the cluster, and answers "no such name" for all others: nothing outside is reachable."""
    return f"""\
cluster.local:53 in-addr.arpa:53 {{
    bind {NODE_IP}
    errors
    ready {DNS_READY}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 1
    }}
    cache 1
}}
.:53 {{
    bind {NODE_IP}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def coredns_rights() -> dict[str, Any]:
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    group, name = "rbac.authorization.k8s.io", "system:coredns"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    }
    return {"apiVersion": "v1", "kind": "List", "items": [role, binding]}
