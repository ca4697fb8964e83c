"""Builds the image, layer by layer, each kept in the cache under the hash of what it is made from.

A change of our own code makes only the last layer anew, which takes seconds. The image's tag is the hash of all of
it: a pod that names it runs exactly that code, and no node ever holds an older image under the same name.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.image.archive import Layer, write_archive
from e2e.image.dockerfile import image_config
from e2e.image.host import SetupFailed, install, say
from e2e.parts.cache import build_once, cache_root, locked
from e2e.parts.jars import connector_dir
from e2e.parts.versions import version

_PROJECT = Path(__file__).parents[2]
_HERE = Path(__file__).parent
_STEPS = _HERE / "steps"
_SUITE = "bookworm"
_KEEP = 2
"""Archives are large; a newer one makes all but the last before it useless."""


@dataclass(frozen=True)
class Image:
    archive: Path
    reference: str


def build_image() -> Image:
    """The image of this tree, from the cache where it is there already."""
    install({"mmdebstrap": "mmdebstrap"})
    project = tomllib.loads((_PROJECT / "pyproject.toml").read_text())["project"]
    layers = [_base(), _packages(project), _product()]
    config = image_config((_PROJECT / "Dockerfile").read_text())
    identity = _hash([layer.digest for layer in layers], config)
    reference = f"localhost/s3sink:{project['version']}-{identity}"
    archive = cache_root() / "images" / f"s3sink-{project['version']}-{identity}.tar"
    with locked(cache_root() / ".images.lock"):
        archive.parent.mkdir(exist_ok=True)
        if not archive.exists():
            unfinished = archive.with_suffix(".new")
            write_archive(unfinished, reference, layers, config)
            unfinished.rename(archive)
        archive.touch()
        _forget_older(archive.parent.glob("s3sink-*.tar"))
    return Image(archive, reference)


def _base() -> Layer:
    packages = (_HERE / "packages.txt").read_text().split()
    # Without the hook Debian brings a program to rearrange its folders, and all of Perl with it.
    options = ["--variant=essential", f"--include={','.join(packages)}", "--aptopt=APT::Install-Recommends false"]
    options += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    script = _STEPS / "base.sh"

    def fill(folder: Path) -> None:
        say("image: Debian, Java and Python: one to two minutes, once")
        command = ["mmdebstrap", "--quiet", *options, f"--customize-hook={script}", _SUITE, str(folder / "layer.tar")]
        _run(command, {"SOURCE_DATE_EPOCH": "0"})

    return _layer("base", _hash(options, script.read_bytes(), _SUITE), fill)


def _packages(project: dict[str, Any]) -> Layer:
    wanted = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in ("job", "operator"))]
    locked_versions = (_PROJECT / "requirements.lock").read_bytes()
    connector = version("spark", "kafka_connector")

    def fill(folder: Path) -> None:
        say("image: Python packages and the Kafka connector: one to two minutes, once per change of requirements.lock")
        _fill("packages", folder, {"JARS": str(connector_dir())})

    return _layer("packages", _hash(wanted, locked_versions, connector, *_scripts("packages")), fill)


def _product() -> Layer:
    files = [_PROJECT / name for name in ("pyproject.toml", "README.md", "LICENSE")]
    for folder in ("sinkjob", "operator", "e2e/image/bin"):
        files += [path for path in (_PROJECT / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"]
    contents = [(str(path.relative_to(_PROJECT)), path.read_bytes()) for path in sorted(files)]
    return _layer("product", _hash(contents, *_scripts("product")), lambda folder: _fill("product", folder, {}))


def _layer(name: str, identity: str, fill: Callable[[Path], None]) -> Layer:
    """A layer whose contents `fill` puts into an empty folder, as files or as one finished `layer.tar`."""
    entry = f"layer-{name}-{identity}"

    def build(folder: Path) -> None:
        fill(folder)
        layer = Layer.of(folder / "layer.tar")
        # Reading hundreds of megabytes again just for their hash would be the longest step of a small change.
        (folder / "digest").write_text(layer.digest)

    folder = build_once(entry, build)
    return Layer(folder / "layer.tar", (folder / "digest").read_text())


def _fill(step: str, folder: Path, env: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(prefix="s3sink-layer-") as root:
        _run([str(_STEPS / f"{step}.sh"), root], {"PYTHON": _python(), **env})
        Layer.of_folder(folder / "layer.tar", Path(root))


def _scripts(step: str) -> list[bytes]:
    return [(_STEPS / name).read_bytes() for name in ("common.sh", f"{step}.sh")]


def _python() -> str:
    """The image's Python is Debian's 3.11: packages are chosen and compiled for it."""
    if platform.python_version().startswith("3.11."):
        return sys.executable
    found = shutil.which("python3.11")
    if not found:
        raise SetupFailed("the image needs a Python 3.11 on PATH to choose and compile packages for its own")
    return found


def _forget_older(archives: Iterable[Path]) -> None:
    by_age = sorted(archives, key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_age[_KEEP:]:
        old.unlink()


def _run(command: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=_PROJECT, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupFailed(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _hash(*inputs: object) -> str:
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:12]
