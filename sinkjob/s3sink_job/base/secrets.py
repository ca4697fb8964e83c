"""Secrets as mounted files, `<folder>/<secret name>/<key>`, read each time they are used.

No secret is ever pickled: a task carries the path of the folder and reads the files itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from s3sink_job.base.errors import FinalError


@dataclass(frozen=True)
class Secrets:
    folder: str

    def read(self, name: str) -> dict[str, str]:
        folder = Path(self.folder) / name
        # In a mount of Kubernetes the visible keys are links; the real files have names with two dots in front.
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        files = [f for f in found if f.is_file() and not f.name.startswith("..")]
        # An optional mount of a missing Secret is an empty folder.
        if not files:
            raise FinalError(
                f"Secret {name!r} is missing or empty: create it, or set the folder of secrets with --secrets",
                reason="SecretMissing",
            )
        return {f.name: _text(name, f) for f in files}

    def key(self, name: str, *keys: str) -> str:
        """The value of the first of `keys` that the secret has."""
        content = self.read(name)
        for key in keys:
            if key in content:
                return content[key]
        raise FinalError(f"Secret {name!r} lacks the key {keys[0]!r}", reason="SecretKeyMissing")


def _text(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").rstrip("\n")
    except UnicodeDecodeError:
        raise FinalError(
            f"Secret {name!r}, key {file.name!r}: not text; give certificates and keys as PEM", reason="SecretNotText"
        ) from None


def write_secrets(folder: Path, secrets: Mapping[str, Mapping[str, bytes]]) -> Secrets:
    """Writes secrets to files as Kubernetes mounts them. Only this user can read them."""
    for name, content in secrets.items():
        place = folder / name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for key, value in content.items():
            target = place / key
            target.touch(mode=0o600)
            target.write_bytes(value)
    return Secrets(str(folder))
