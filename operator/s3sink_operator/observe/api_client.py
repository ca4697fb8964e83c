"""Requests to the API server.

The official client finds the credentials and renews them. The requests are ours, because that client is made for
typed objects, and the operator applies documents.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import kubernetes.client
import kubernetes.config
import urllib3

from s3sink_api.group import API_VERSION, KIND, PLURAL
from s3sink_api.labels import MANAGER

PATHS = {
    "ConfigMap": ("/api/v1", "configmaps"),
    "Event": ("/api/v1", "events"),
    "Pod": ("/api/v1", "pods"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "Job": ("/apis/batch/v1", "jobs"),
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    KIND: (f"/apis/{API_VERSION}", PLURAL),
}
"""The path of the API group and the plural of each kind."""
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_PAGE_SIZE = 500
_TIMEOUT = urllib3.Timeout(connect=5.0, read=30.0)
_RETRY = urllib3.Retry(
    total=2,
    # The server may have closed an idle connection.
    connect=2,
    read=1,
    status=0,
    redirect=0,
    backoff_factor=0.2,
    # The work queue decides when to retry: a thread that sleeps serves no other sink.
    respect_retry_after_header=False,
)


class ApiError(Exception):
    """The API server refused a request, or did not answer; then `status` is 0."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def final(self) -> bool:
        """The same request will be refused again until somebody changes something."""
        return self.status in {400, 403, 422}

    @property
    def namespace_terminating(self) -> bool:
        """Nothing can be created in a namespace that is being deleted."""
        return self.status == 403 and "because it is being terminated" in str(self)


class ListedObject(NamedTuple):
    namespace: str
    name: str
    uid: str


class ApiClient:
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
        """None if it does not exist."""
        try:
            return self._request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list_names(self, kind: str, namespace: str, selector: str) -> tuple[list[ListedObject], int]:
        """All objects, and the resourceVersion of that list. An empty namespace means all namespaces."""
        found: list[ListedObject] = []
        query = {"labelSelector": selector, "limit": str(_PAGE_SIZE)}
        while True:
            page = self._request("GET", f"{_path(kind, namespace)}?{urlencode(query)}", accept=_METADATA_ONLY)
            # The server sends null for an empty list.
            for metadata in (item["metadata"] for item in page["items"] or ()):
                found.append(ListedObject(metadata["namespace"], metadata["name"], metadata["uid"]))
            if not page["metadata"].get("continue"):
                return found, int(page["metadata"]["resourceVersion"])
            query["continue"] = page["metadata"]["continue"]

    def apply(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply. Takes over fields that others have set."""
        metadata = document["metadata"]
        path = f"{_path(document['kind'], metadata['namespace'])}/{quote(metadata['name'])}"
        query = urlencode({"fieldManager": MANAGER, "force": "true"})
        return self._request("PATCH", f"{path}?{query}", document, "application/apply-patch+yaml")

    def delete(self, kind: str, namespace: str, name: str, uid: str) -> bool:
        """False if it did not exist, or another object has its name by now. Its own dependents are deleted first."""
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
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        headers = {"Accept": accept, "User-Agent": MANAGER, **self._credentials()}
        if body is not None:
            headers["Content-Type"] = content_type
        content = None if body is None else _encoded(body)
        url = f"{self.configuration.host}{path}"
        try:
            answer = self._pool.request(method, url, body=content, headers=headers, timeout=_TIMEOUT, retries=_RETRY)
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(0, f"no answer from the API server: {error}") from error
        if answer.status >= 300:
            raise ApiError(answer.status, _message(answer.status, answer.data))
        try:
            parsed: dict[str, Any] = json.loads(answer.data)
        except ValueError as error:
            raise ApiError(0, f"the API server's answer to {method} {path} is not JSON") from error
        return parsed

    def _credentials(self) -> dict[str, str]:
        # This call makes the client read a renewed token.
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
    """JSON that is also YAML, as the server parses an apply: YAML knows no escaped surrogate pairs."""
    text = json.dumps(body, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8", "replace")


def _path(kind: str, namespace: str) -> str:
    group, plural = PATHS[kind]
    return f"{group}/namespaces/{quote(namespace)}/{plural}" if namespace else f"{group}/{plural}"


def _message(status: int, body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])[:1000]
    except (ValueError, KeyError, TypeError):
        return f"HTTP {status}"
