"""Certificates and kubeconfigs, from one authority per cluster, which is new for each start."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import trustme
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


class Authority:
    """Issues certificates and keys for the programs of one cluster, as files in `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._ca = trustme.CA(organization_name="s3sink test cluster")
        self.ca = folder / "ca.crt"
        self.ca.write_bytes(self._ca.cert_pem.bytes())
        self.ca_key = self._secret("ca.key", self._ca.private_key_pem.bytes())
        # The API server reads the public key, to check tokens, from the private key, and only in this format.
        tokens = ec.generate_private_key(ec.SECP256R1())
        pem = tokens.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        self.token_key = self._secret("tokens.key", pem)

    def issue(self, user: str, *, group: str = "", names: Sequence[str] = ()) -> tuple[Path, Path]:
        """Certificate and key of a user, or of a server with these DNS names and addresses."""
        # Kubernetes reads the common name as the user and organizations as groups. Go refuses a certificate
        # whose list of names is empty.
        issued = self._ca.issue_cert(
            *(names or ["nobody.invalid"]), common_name=user, organization_name=group or "none"
        )
        file = user.replace(":", "-")
        certificate = self._folder / f"{file}.crt"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        return certificate, self._secret(f"{file}.key", issued.private_key_pem.bytes())

    def kubeconfig(self, file: Path, server: str, user: str, *, group: str = "", names: Sequence[str] = ()) -> Path:
        """A kubeconfig that contains its certificates, so that a copy works anywhere."""
        certificate, key = self.issue(user, group=group, names=names)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "s3sink", "cluster": {"server": server, "certificate-authority-data": _inline(self.ca)}}
            ],
            "users": [
                {
                    "name": user,
                    "user": {"client-certificate-data": _inline(certificate), "client-key-data": _inline(key)},
                }
            ],
            "contexts": [{"name": "s3sink", "context": {"cluster": "s3sink", "user": user}}],
            "current-context": "s3sink",
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        return file

    def _secret(self, name: str, content: bytes) -> Path:
        file = self._folder / name
        file.touch(mode=0o600)
        file.write_bytes(content)
        return file


def _inline(file: Path) -> str:
    return b64encode(file.read_bytes()).decode()
