"""Writes OCI image archives, and reads the image's name from one.

An archive is a tar file with layers, a configuration and indexes that name them by digest. It depends on the
contents only, not on the time: the same inputs give the same image.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tools.host import SetupFailed

_NAME = "org.opencontainers.image.ref.name"
_CONTAINERD_NAME = "io.containerd.image.name"
_MEDIA = "application/vnd.oci.image"
_EPOCH = "1970-01-01T00:00:00Z"
_PIECE = 1 << 20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Layer:
    """An uncompressed tar file: it stays on this machine, and compressing takes longer than loading."""

    tar: Path
    digest: str

    @classmethod
    def of(cls, tar: Path) -> Layer:
        with tar.open("rb") as file:
            return cls(tar, hashlib.file_digest(file, "sha256").hexdigest())

    @classmethod
    def of_folder(cls, tar: Path, folder: Path) -> Layer:
        """Everything in `folder`, owned by root, in a fixed order and without times."""
        with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(folder.rglob("*")):
                archive.add(path, str(path.relative_to(folder)), recursive=False, filter=_anonymous)
        return cls.of(tar)

    @classmethod
    def of_files(cls, tar: Path, files: Mapping[str, Path]) -> Layer:
        with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, path in sorted(files.items()):
                archive.add(path, name, recursive=False, filter=_anonymous)
        return cls.of(tar)

    @property
    def size(self) -> int:
        return self.tar.stat().st_size

    def packed_size(self) -> int:
        """The size after gzip, as in a registry. Slow."""
        packer = zlib.compressobj(level=6, wbits=31)
        size = 0
        with self.tar.open("rb") as file:
            while piece := file.read(_PIECE):
                size += len(packer.compress(piece))
        return size + len(packer.flush())


def write_archive(archive: Path, reference: str, layers: Sequence[Layer], config: Mapping[str, Any]) -> None:
    """`config` holds the image's settings by the names of the OCI specification: Env, User, Entrypoint …"""
    settings = _json(
        {
            "architecture": _ARCHITECTURES[platform.machine()],
            "os": "linux",
            "created": _EPOCH,
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in layers]},
            "history": [{"created": _EPOCH, "created_by": layer.tar.name} for layer in layers],
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": _descriptor("config.v1+json", _sha256(settings), len(settings)),
            "layers": [_descriptor("layer.v1.tar", layer.digest, layer.size) for layer in layers],
        }
    )
    named = _descriptor("manifest.v1+json", _sha256(manifest), len(manifest))
    named["annotations"] = {_NAME: reference, _CONTAINERD_NAME: reference}
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(tar, "index.json", _json({"schemaVersion": 2, "manifests": [named]}))
        for blob in (settings, manifest):
            _add(tar, f"blobs/sha256/{_sha256(blob)}", blob)
        for layer in {layer.digest: layer for layer in layers}.values():
            info = tarfile.TarInfo(f"blobs/sha256/{layer.digest}")
            info.size = layer.size
            with layer.tar.open("rb") as file:
                tar.addfile(info, file)


def read_reference(archive: Path) -> str:
    """The image's name and tag in an archive."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name == "index.json" and (file := tar.extractfile(member)):
                    (manifest,) = json.load(file)["manifests"]
                    return str(manifest["annotations"][_NAME])
    except (OSError, tarfile.ReadError) as error:
        raise SetupFailed(f"{archive} cannot be read: {error}") from error
    raise SetupFailed(f"{archive} is not an OCI archive: it has no index.json")


def copy_without(archive: Path, known: Collection[str], out: IO[bytes]) -> None:
    """Copies an archive without the blobs with these digests (`sha256:…`), which the reader already has."""
    with tarfile.open(archive) as source, tarfile.open(fileobj=out, mode="w|") as copy:
        for member in source:
            if member.name.replace("blobs/sha256/", "sha256:") not in known:
                copy.addfile(member, source.extractfile(member))


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": size}


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 0
    return info


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
