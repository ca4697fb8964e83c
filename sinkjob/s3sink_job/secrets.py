"""Secrets as mounted files: `<folder>/<secret name>/<key>`, read where they are used and when they change.

Nothing here is ever pickled with a secret in it: a task carries the folder's path and reads for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from s3sink_job.errors import FinalError


@dataclass(frozen=True)
class Secrets:
    folder: str

    def read(self, name: str) -> dict[str, str]:
        folder = Path(self.folder) / name
        # Kubernetes keeps the real files behind dot-dot names; the visible keys are links to them.
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        files = [f for f in found if f.is_file() and not f.name.startswith("..")]
        # An optional mount of a Secret that does not exist is an empty folder.
        if not files:
            raise FinalError(
                f"Secret {name!r} is not there or empty: create it, or give its folder with --secrets",
                reason="SecretMissing",
            )
        return {f.name: _text(name, f) for f in files}

    def key(self, name: str, *keys: str) -> str:
        """The first of `keys` that the secret holds."""
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
    """Lays secrets given in a file out as Kubernetes would mount them, readable by this user alone."""
    for name, content in secrets.items():
        place = folder / name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for key, value in content.items():
            target = place / key
            target.touch(mode=0o600)
            target.write_bytes(value)
    return Secrets(str(folder))
