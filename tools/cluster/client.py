"""A fast client of the API server: one open connection instead of a kubectl for each request."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlencode

import urllib3
import yaml

Document = dict[str, Any]
PatchKind = Literal["merge", "json", "strategic-merge", "apply"]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACES = "/api/v1/namespaces"

_WATCH = urllib3.Timeout(connect=5.0, read=600.0)


def sinks(namespace: str, name: str = "", subresource: str = "") -> str:
    """The path of a namespace's sinks, of one of them, or of its `status` or `scale`."""
    parts = [f"/apis/s3sink.dev/v1alpha1/namespaces/{namespace}/s3sinks", name, subresource]
    return "/".join(part for part in parts if part)


class Refused(Exception):
    """The API server refused a request."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code, self.reason, self.message = code, reason, message


class Client:
    """Requests by path. Every method returns the server's answer, and raises Refused for an error."""

    def __init__(self, server: str, tls: ssl.SSLContext, *, token: str | None = None) -> None:
        self._server, self._tls = server, tls
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(ssl_context=tls, maxsize=8, timeout=30.0, retries=False)

    @classmethod
    def of(cls, kubeconfig: Path) -> Self:
        """A client with the user and certificates of this file."""
        loaded = yaml.safe_load(kubeconfig.read_text())
        cluster, user = loaded["clusters"][0]["cluster"], loaded["users"][0]["user"]
        tls = _trusting(cluster)
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder, "crt"), Path(folder, "key")
            certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
            key.write_bytes(base64.b64decode(user["client-key-data"]))
            tls.load_cert_chain(certificate, key)
        return cls(cluster["server"], tls)

    @classmethod
    def with_token(cls, kubeconfig: Path, token: str) -> Self:
        """A client with a token, such as a ServiceAccount's, for the cluster of this file."""
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        return cls(cluster["server"], _trusting(cluster), token=token)

    def get(self, path: str, **query: str) -> Document:
        return self._ask("GET", path, query)

    def list(self, path: str, **query: str) -> list[Document]:
        items: list[Document] = self._ask("GET", path, query)["items"]
        return items

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except Refused as refused:
            if refused.code == 404:
                return False
            raise
        return True

    def post(self, path: str, document: Mapping[str, Any], **query: str) -> Document:
        return self._ask("POST", path, query, document)

    def try_post(self, path: str, document: Mapping[str, Any]) -> Document:
        """A create as a dry run, with unknown fields as errors, like `kubectl apply`: what would be stored."""
        return self._ask("POST", path, {"dryRun": "All", "fieldValidation": "Strict"}, document)

    def put(self, path: str, document: Mapping[str, Any], **query: str) -> Document:
        return self._ask("PUT", path, query, document)

    def patch(self, path: str, patch: Any, kind: PatchKind = "merge", **query: str) -> Document:
        """`apply` needs a fieldManager."""
        encoding = "yaml" if kind == "apply" else "json"
        return self._ask("PATCH", path, query, patch, f"application/{kind}-patch+{encoding}")

    def delete(self, path: str, **query: str) -> Document:
        return self._ask("DELETE", path, query)

    def watch(self, path: str, **query: str) -> Iterator[Document]:
        """Events from now on, or since a `resourceVersion`, until the server ends the watch."""
        url = f"{self._server}{path}?{urlencode({**query, 'watch': 'true'})}"
        answer = self._pool.request("GET", url, headers=self._headers, preload_content=False, timeout=_WATCH)
        try:
            if answer.status >= 400:
                raise Refused(answer.status, "", answer.read().decode(errors="replace"))
            rest = b""
            for chunk in answer.stream(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines)
        finally:
            answer.close()

    def close(self) -> None:
        self._pool.clear()

    def _ask(
        self, method: str, path: str, query: Mapping[str, str], body: Any = None, kind: str = "application/json"
    ) -> Document:
        url = f"{self._server}{path}{'?' if query else ''}{urlencode(query)}"
        headers = {**self._headers, "Content-Type": kind, "Accept": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        answer = self._pool.request(method, url, body=content, headers=headers)
        try:
            said: Document = json.loads(answer.data)
        except ValueError:
            # For a request that the server cannot parse, the answer is plain text.
            said = {"reason": "", "message": answer.data.decode(errors="replace")}
        if answer.status >= 400:
            raise Refused(answer.status, str(said.get("reason", "")), str(said.get("message", "")))
        return said


def _trusting(cluster: Mapping[str, str]) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
