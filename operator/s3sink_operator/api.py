"""Plain requests to the API server. The official client finds the credentials and keeps them fresh; the rest of it
is made for typed objects, while we apply documents."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import kubernetes.client
import kubernetes.config
import urllib3

from s3sink_operator.model import MANAGER

GROUPS = {
    "ConfigMap": ("/api/v1", "configmaps"),
    "Event": ("/api/v1", "events"),
    "Pod": ("/api/v1", "pods"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "Job": ("/apis/batch/v1", "jobs"),
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "S3Sink": ("/apis/s3sink.dev/v1alpha1", "s3sinks"),
}
_NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_PAGE = 500
_TIMEOUT = urllib3.Timeout(connect=5.0, read=30.0)


class ApiError(Exception):
    """The API server refused or did not answer. `status` is 0 for the latter."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def final(self) -> bool:
        """The same request will be refused again, until somebody changes something."""
        return self.status in {400, 403, 422}

    @property
    def namespace_goes(self) -> bool:
        """What is being deleted takes nothing new."""
        return self.status == 403 and "because it is being terminated" in str(self)


class Api:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self.configuration = _configuration()
        verify = bool(self.configuration.verify_ssl)
        self._pool = urllib3.PoolManager(
            maxsize=16,
            block=False,
            cert_reqs="CERT_REQUIRED" if verify else "CERT_NONE",
            ca_certs=self.configuration.ssl_ca_cert,
            cert_file=self.configuration.cert_file,
            key_file=self.configuration.key_file,
        )
        self._lock = threading.Lock()

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self.read(f"{_path(kind, namespace)}/{quote(name)}")

    def read(self, path: str) -> dict[str, Any] | None:
        """None if there is no such thing."""
        try:
            return self._request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def names(self, kind: str, namespace: str, selector: str) -> tuple[list[tuple[str, str, str]], int]:
        """(namespace, name, uid) of all there are, and the version of that list. An empty namespace means all."""
        found: list[tuple[str, str, str]] = []
        query = {"labelSelector": selector, "limit": str(_PAGE)}
        while True:
            page = self._request("GET", f"{_path(kind, namespace)}?{urlencode(query)}", accept=_NAMES_ONLY)
            # An empty list of names is none at all.
            for metadata in (item["metadata"] for item in page["items"] or ()):
                found.append((metadata["namespace"], metadata["name"], metadata["uid"]))
            if not page["metadata"].get("continue"):
                return found, int(page["metadata"]["resourceVersion"])
            query["continue"] = page["metadata"]["continue"]

    def apply(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply; what we set is ours, whoever set it before."""
        metadata = document["metadata"]
        path = f"{_path(document['kind'], metadata['namespace'])}/{quote(metadata['name'])}"
        query = urlencode({"fieldManager": MANAGER, "force": "true"})
        return self._request("PATCH", f"{path}?{query}", document, "application/apply-patch+yaml")

    def delete(self, kind: str, namespace: str, name: str, uid: str) -> bool:
        """Whether it was there. It stays until its own dependents are gone; a later one of its name is left alone."""
        body = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
        try:
            self._request("DELETE", f"{_path(kind, namespace)}/{quote(name)}", body)
        except ApiError as error:
            if error.status not in {404, 409}:
                raise
            return False
        return True

    def replace_status(self, kind: str, namespace: str, name: str, status: Mapping[str, Any]) -> dict[str, Any]:
        patch = [{"op": "add", "path": "/status", "value": status}]
        path = f"{_path(kind, namespace)}/{quote(name)}/status?{urlencode({'fieldManager': MANAGER})}"
        return self._request("PATCH", path, patch, "application/json-patch+json")

    def create(self, kind: str, namespace: str, document: Mapping[str, Any]) -> None:
        self._request("POST", _path(kind, namespace), document)

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        headers = {"Accept": accept, "User-Agent": MANAGER, **self._credentials()}
        if body is not None:
            headers["Content-Type"] = kind
        try:
            answer = self._pool.request(
                method,
                f"{self.configuration.host}{path}",
                body=None if body is None else _encoded(body),
                headers=headers,
                timeout=_TIMEOUT,
                # A connection that the server closed meanwhile is not an error.
                retries=urllib3.Retry(
                    total=2,
                    connect=2,
                    read=1,
                    status=0,
                    redirect=0,
                    backoff_factor=0.2,
                    # When to try again is for the caller to say: a thread that waits serves nobody.
                    respect_retry_after_header=False,
                ),
            )
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, f"the API server does not answer: {error}") from error
        if answer.status >= 300:
            raise ApiError(answer.status, _message(answer.status, answer.data))
        try:
            parsed: dict[str, Any] = json.loads(answer.data)
        except ValueError as error:
            raise ApiError(0, f"the API server answers {method} {path} with something that is not JSON") from error
        return parsed

    def _credentials(self) -> dict[str, str]:
        # Asking is what makes the client read a renewed token.
        with self._lock:
            for name in ("BearerToken", "authorization"):
                if token := self.configuration.get_api_key_with_prefix(name):
                    return {"Authorization": token}
        return {}


def _configuration() -> Any:
    configuration = kubernetes.client.Configuration()
    try:
        kubernetes.config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except kubernetes.config.ConfigException:
        kubernetes.config.load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    return configuration


def _encoded(body: Any) -> bytes:
    """JSON that is YAML too, which the server takes an apply for: that knows no pairs of escapes for one character."""
    text = json.dumps(body, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8", "replace")


def _path(kind: str, namespace: str) -> str:
    prefix, plural = GROUPS[kind]
    return f"{prefix}/namespaces/{quote(namespace)}/{plural}" if namespace else f"{prefix}/{plural}"


def _message(status: int, body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])[:1000]
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"
