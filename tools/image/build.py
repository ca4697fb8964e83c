"""Builds the image, layer by layer. The cache keeps each layer under the hash of its inputs.

The Dockerfile describes the image. A step runs in a copy of the files that it would see in Docker, so that neither
build can depend on a file that the other lacks.

A change of our own code rebuilds only the last layer, in seconds. The image's tag is a hash of its content: a pod that
names it runs exactly that code, and no node has an older image under the same name.
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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.host import SetupFailed, install, say
from tools.image.archive import Layer, write_archive
from tools.image.dockerfile import debian_suite, image_config, python_version, steps
from tools.parts.cache import build_once, cache_root, locked
from tools.parts.jars import connector_dir

_PROJECT = Path(__file__).parents[2]
_KEEP = 3
"""How many archives, and layers of each kind, stay in the cache: they are large."""


@dataclass(frozen=True)
class Image:
    archive: Path
    reference: str
    layers: Mapping[str, Layer]
    """By the names of their steps, the lowest layer first."""


def build_image(root: Path = _PROJECT) -> Image:
    """The image of this tree, or of a frozen release; from the cache, if it is there."""
    install({"mmdebstrap": "mmdebstrap"})
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    dockerfile = (root / "Dockerfile").read_text()
    layers = {
        "base": _base(root, dockerfile),
        "packages": _packages(root, dockerfile, project),
        "product": _product(root, dockerfile),
    }
    config = image_config(dockerfile)
    identity = _hash([layer.digest for layer in layers.values()], config)
    reference = f"localhost/s3sink:{project['version']}-{identity}"
    archive = cache_root() / "images" / f"s3sink-{project['version']}-{identity}.tar"
    with locked(cache_root() / ".images.lock"):
        archive.parent.mkdir(exist_ok=True)
        if not archive.exists():
            unfinished = archive.with_suffix(".new")
            write_archive(unfinished, reference, list(layers.values()), config)
            unfinished.rename(archive)
        archive.touch()
        _forget_older(archive.parent.glob("s3sink-*.tar"))
        for name, layer in layers.items():
            layer.tar.parent.touch()
            _forget_older(cache_root().glob(f"layer-{name}-*"))
    return Image(archive, reference, layers)


def _base(root: Path, dockerfile: str) -> Layer:
    suite = debian_suite(dockerfile)
    step = steps(dockerfile)["base"]
    (listed,) = (source for source in step.sources if source.endswith("packages.txt"))
    packages = (root / listed).read_text().split()
    # Without this hook Debian installs a program that merges /usr, and with it all of Perl.
    options = ["--variant=essential", f"--include={','.join(packages)}", "--aptopt=APT::Install-Recommends false"]
    options += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    script = root / step.script

    def fill(folder: Path) -> None:
        say("image: Debian, Java and Python: one to two minutes, once")
        command = ["mmdebstrap", "--quiet", *options, f"--customize-hook={script}", suite, str(folder / "layer.tar")]
        _run(command, root, {"SOURCE_DATE_EPOCH": "0"})

    return _layer("base", _hash(options, script.read_bytes(), suite), fill)


def _packages(root: Path, dockerfile: str, project: dict[str, Any]) -> Layer:
    wanted = [project["dependencies"], project["optional-dependencies"]]
    locked_versions = (root / "requirements.lock").read_bytes()
    versions = tomllib.loads((root / "sinkjob/s3sink_job/versions.toml").read_text())
    connector = versions["spark"]

    def fill(folder: Path) -> None:
        say("image: Python packages and the Kafka connector: one to two minutes, once per change of requirements.lock")
        fill_step("packages", dockerfile, folder, {"JARS": str(connector_dir(connector))}, root)

    script = root / steps(dockerfile)["packages"].script
    scripts = [path.read_bytes() for path in (script.with_name("common.sh"), script)]
    return _layer("packages", _hash(wanted, locked_versions, connector, scripts, python_version(dockerfile)), fill)


def _product(root: Path, dockerfile: str) -> Layer:
    seen = step_files("product", dockerfile, root)
    contents = [(name, path.stat().st_mode & 0o111, path.read_bytes()) for name, path in seen.items()]
    identity = _hash(contents, python_version(dockerfile))
    return _layer("product", identity, lambda folder: fill_step("product", dockerfile, folder, {}, root))


def step_files(step: str, dockerfile: str, root: Path = _PROJECT) -> dict[str, Path]:
    """The files that the step sees, by their paths in the project: those that the Dockerfile has copied by then."""
    files: dict[str, Path] = {}
    for source in steps(dockerfile)[step].sources:
        place = root / source
        for path in place.rglob("*") if place.is_dir() else [place]:
            if path.is_file() and path.suffix != ".pyc":
                files[str(path.relative_to(root))] = path
    return dict(sorted(files.items()))


def _layer(name: str, identity: str, fill: Callable[[Path], None]) -> Layer:
    """A layer that `fill` writes to an empty folder as `layer.tar`."""
    entry = f"layer-{name}-{identity}"

    def build(folder: Path) -> None:
        fill(folder)
        layer = Layer.of(folder / "layer.tar")
        # Hashing hundreds of megabytes again would take longer than the rest of a small change.
        (folder / "digest").write_text(layer.digest)

    folder = build_once(entry, build)
    return Layer(folder / "layer.tar", (folder / "digest").read_text())


def fill_step(step: str, dockerfile: str, folder: Path, env: dict[str, str], root: Path = _PROJECT) -> None:
    """Runs the step in a folder with only the files that it would see in Docker."""
    with tempfile.TemporaryDirectory(prefix="s3sink-layer-") as scratch:
        made, project = Path(scratch, "root"), Path(scratch, "project")
        made.mkdir()
        for name, path in step_files(step, dockerfile, root).items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, project / name)
        script = project / steps(dockerfile)[step].script
        _run([str(script), str(made)], project, {"PYTHON": _python(python_version(dockerfile)), **env})
        Layer.of_folder(folder / "layer.tar", made)


def _python(wanted: str) -> str:
    """A Python of the image's version: packages are chosen and compiled for that version."""
    if platform.python_version().startswith(f"{wanted}."):
        return sys.executable
    found = shutil.which(f"python{wanted}")
    if not found:
        raise SetupFailed(f"Python {wanted} must be on PATH, as in the image: packages are compiled with it")
    return found


def _forget_older(kept: Iterable[Path]) -> None:
    by_age = sorted(kept, key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_age[_KEEP:]:
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def _run(command: list[str], folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupFailed(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _hash(*inputs: object) -> str:
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:12]
