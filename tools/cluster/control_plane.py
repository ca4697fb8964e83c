"""The control plane: etcd, the API server, the controllers and, for a node, the scheduler."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.cluster.certificates import Authority
from tools.cluster.daemons import Daemons
from tools.parts.processes import LOOPBACK, free_ports

SERVICES = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"
"""The API server's address for pods: the Service `kubernetes`."""
AUDIT_LOG = "audit.log"
"""In the cluster's log folder: the requests of ServiceAccounts to the API server, one JSON object per line."""
_NO_PROXY = urllib.request.ProxyHandler({})
# Without the requests of Kubernetes' own controllers, which are far more.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"], "omitManagedFields": True},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class ControlPlane:
    """Starts the programs of one control plane, which listens on `address`, and sends it requests."""

    programs: Path
    folder: Path
    daemons: Daemons
    authority: Authority
    address: str
    port: int

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def start(self, *, scheduler: bool) -> None:
        etcd, peers = (f"http://{LOOPBACK}:{port}" for port in free_ports(2))
        self._start_etcd(etcd, peers)
        self.authority.kubeconfig(self.kubeconfig, self.server, "admin", group="system:masters")
        self._start_apiserver(etcd)
        self._start_controllers()
        if scheduler:
            self._start_scheduler()
        # Every test needs this from the controllers first: without it no pod is admitted.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.daemons.wait_until("kube-controller-manager", lambda: self.answers(account), 60)

    def answers(self, path: str) -> bool:
        """Whether the administrator gets a successful answer from the API server."""
        return self._get(path) is not None

    def read(self, path: str) -> dict[str, Any] | None:
        """The object at `path`; None while it does not exist or the server does not answer."""
        body = self._get(path)
        return None if body is None else dict(json.loads(body))

    def _get(self, path: str) -> bytes | None:
        try:
            with self._opener().open(self.server + path, timeout=5) as answer:
                return bytes(answer.read())
        except (urllib.error.URLError, OSError):
            return None

    def _opener(self) -> urllib.request.OpenerDirector:
        context = ssl.create_default_context(cafile=str(self.authority.ca))
        context.load_cert_chain(self.folder / "pki" / "admin.crt", self.folder / "pki" / "admin.key")
        return urllib.request.build_opener(_NO_PROXY, urllib.request.HTTPSHandler(context=context))

    def _start_etcd(self, clients: str, peers: str) -> None:
        command = [str(self.programs / "etcd"), "--name=one", f"--data-dir={self.folder / 'etcd'}"]
        command += [f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"]
        command += [f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"]
        # Its data need not survive a crash of the machine.
        command += [f"--initial-cluster=one={peers}", "--unsafe-no-fsync", "--log-level=warn"]
        self.daemons.start("etcd", command)
        self.daemons.wait_until("etcd", lambda: http_answers(f"{clients}/health"), 30)

    def _start_apiserver(self, etcd: str) -> None:
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        names += ["kubernetes.default.svc.cluster.local", LOOPBACK, self.address, FIRST_SERVICE]
        certificate, key = self.authority.issue("kube-apiserver", names=list(dict.fromkeys(names)))
        to_kubelet, to_kubelet_key = self.authority.issue("kubelet-client", group="system:masters")
        front, front_key = self.authority.issue("front-proxy-client")
        policy = self.folder / "audit-policy.json"
        policy.write_text(json.dumps(_AUDIT_POLICY))
        options = {
            "etcd-servers": etcd,
            "bind-address": self.address,
            "advertise-address": self.address,
            "secure-port": self.port,
            "tls-cert-file": certificate,
            "tls-private-key-file": key,
            "client-ca-file": self.authority.ca,
            "kubelet-client-certificate": to_kubelet,
            "kubelet-client-key": to_kubelet_key,
            "kubelet-certificate-authority": self.authority.ca,
            "kubelet-preferred-address-types": "InternalIP",
            "requestheader-client-ca-file": self.authority.ca,
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": front,
            "proxy-client-key-file": front_key,
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": self.authority.token_key,
            "service-account-signing-key-file": self.authority.token_key,
            "service-cluster-ip-range": SERVICES,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "allow-privileged": "true",
            "audit-policy-file": policy,
            "audit-log-path": self.folder / "log" / AUDIT_LOG,
        }
        if self.address == LOOPBACK:
            # No pod needs the Service `kubernetes`, and endpoints must not contain a loopback address.
            options["endpoint-reconciler-type"] = "none"
        self._start("kube-apiserver", options)
        self.daemons.wait_until("kube-apiserver", lambda: self.answers("/readyz"), 90)

    def _start_controllers(self) -> None:
        options = {
            **self._as_client("kube-controller-manager"),
            "service-account-private-key-file": self.authority.token_key,
            "root-ca-file": self.authority.ca,
            "use-service-account-credentials": "true",
            # The default of 20 requests a second is too slow for a test with a thousand objects.
            "kube-api-qps": 200,
            "kube-api-burst": 400,
            "cluster-signing-cert-file": self.authority.ca,
            "cluster-signing-key-file": self.authority.ca_key,
            # It creates this folder; the default is a folder of the system.
            "flex-volume-plugin-dir": self.folder / "volume-plugins",
        }
        self._start("kube-controller-manager", options)

    def _start_scheduler(self) -> None:
        self._start("kube-scheduler", self._as_client("kube-scheduler"))

    def _as_client(self, name: str) -> dict[str, object]:
        file = self.authority.kubeconfig(self.folder / f"{name}.kubeconfig", self.server, f"system:{name}")
        # There is one of each, so no leader election. Nothing connects to them, so no port.
        return {"kubeconfig": file, "leader-elect": "false", "secure-port": 0}

    def _start(self, name: str, options: dict[str, object]) -> None:
        self.daemons.start(name, [str(self.programs / name), *(f"--{k}={v}" for k, v in options.items())])


def http_answers(url: str) -> bool:
    try:
        with urllib.request.build_opener(_NO_PROXY).open(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False
