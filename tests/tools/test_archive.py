"""Image archives hold what was built, under the name that pods use."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools.host import SetupFailed
from tools.image.archive import Layer, copy_without, read_reference, write_archive


def folder_with(tmp_path: Path, name: str, files: dict[str, str]) -> Path:
    folder = tmp_path / name
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def blob(tar: tarfile.TarFile, digest: str) -> bytes:
    file = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
    assert file is not None
    return file.read()


def test_every_digest_matches_its_content(tmp_path: Path) -> None:
    layer = Layer.of_folder(tmp_path / "layer.tar", folder_with(tmp_path, "root", {"opt/program": "run"}))
    write_archive(tmp_path / "image.tar", "localhost/it:1", [layer], {"User": "185"})
    with tarfile.open(tmp_path / "image.tar") as tar:
        index_file = tar.extractfile("index.json")
        assert index_file is not None
        (named,) = json.load(index_file)["manifests"]
        manifest: dict[str, Any] = json.loads(blob(tar, named["digest"]))
        for descriptor in (named, manifest["config"], *manifest["layers"]):
            content = blob(tar, descriptor["digest"])
            assert descriptor["size"] == len(content)
            assert descriptor["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert json.loads(blob(tar, manifest["config"]["digest"]))["config"] == {"User": "185"}


def test_the_name_of_an_image_is_read_from_its_archive(tmp_path: Path) -> None:
    layer = Layer.of_folder(tmp_path / "layer.tar", folder_with(tmp_path, "root", {"file": ""}))
    write_archive(tmp_path / "image.tar", "localhost/it:1", [layer], {})
    assert read_reference(tmp_path / "image.tar") == "localhost/it:1"


def test_a_tar_file_that_is_no_image_is_refused_with_its_name(tmp_path: Path) -> None:
    layer = Layer.of_folder(tmp_path / "layer.tar", folder_with(tmp_path, "root", {"file": ""}))
    with pytest.raises(SetupFailed, match=r"layer\.tar is not an OCI archive"):
        read_reference(layer.tar)


def test_the_same_files_make_the_same_layer_at_any_time(tmp_path: Path) -> None:
    files = {"b/two": "2", "a/one": "1"}
    first = Layer.of_folder(tmp_path / "first.tar", folder_with(tmp_path, "first", files))
    second_folder = folder_with(tmp_path, "second", dict(reversed(files.items())))
    (second_folder / "a/one").touch()
    assert Layer.of_folder(tmp_path / "second.tar", second_folder).digest == first.digest


def test_layers_belong_to_root(tmp_path: Path) -> None:
    layer = Layer.of_folder(tmp_path / "layer.tar", folder_with(tmp_path, "root", {"opt/file": ""}))
    with tarfile.open(layer.tar) as tar:
        assert {(member.uid, member.gid, member.mtime) for member in tar} == {(0, 0, 0)}


def test_layers_that_a_node_has_are_not_sent_to_it(tmp_path: Path) -> None:
    layers = [
        Layer.of_folder(tmp_path / f"{name}.tar", folder_with(tmp_path, name, {name: name})) for name in ("old", "new")
    ]
    write_archive(tmp_path / "image.tar", "localhost/it:1", layers, {})
    with (tmp_path / "sent.tar").open("wb") as out:
        copy_without(tmp_path / "image.tar", [f"sha256:{layers[0].digest}"], out)
    with tarfile.open(tmp_path / "image.tar") as whole, tarfile.open(tmp_path / "sent.tar") as sent:
        assert set(whole.getnames()) - set(sent.getnames()) == {f"blobs/sha256/{layers[0].digest}"}
        assert blob(sent, f"sha256:{layers[1].digest}") == layers[1].tar.read_bytes()
