"""Jars from Maven Central without Maven: PySpark carries Ivy, which resolves and fetches them.

Of the connector only the jars that are listed are fetched: all else Spark itself brings.

    python -m e2e.parts.jars      fetch everything now
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from e2e.parts.cache import build_once, cache_root, locked
from e2e.parts.versions import section, version


class JarsUnavailable(Exception):
    """The jars are neither in the cache nor could they be fetched."""


def java() -> str:
    """The `java` program, from JAVA_HOME when that is set."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not os.access(found, os.X_OK):
        raise JarsUnavailable(f"no java program at {found or 'any place on PATH'}: run `make setup`")
    return found


def spark_jars_dir() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise JarsUnavailable("pyspark is not installed: run `make setup`")
    return Path(spec.submodule_search_locations[0]) / "jars"


def connector_dir(versions: Mapping[str, str] | None = None) -> Path:
    """A folder with the jars of Spark's Kafka connector, as `S3SINK_JARS` wants it.

    `versions` is the section `spark` of a release's versions.toml; this tree's by default.
    """
    coordinates = [*(versions or section("spark")).values()]
    if len(coordinates) == 1:
        # Release 0.1.0 names the connector alone, and Ivy finds the rest: all of Hadoop too, unless told not to.
        return _resolved(coordinates, without=_names_in(spark_jars_dir()))
    return _resolved(coordinates, alone=True)


def connector_jars() -> list[Path]:
    return sorted(connector_dir().glob("*.jar"))


def broker_dir() -> Path:
    return _resolved([version("kafka", "broker"), version("kafka", "broker_logging")])


def broker_jars() -> list[Path]:
    return sorted(broker_dir().glob("*.jar"))


def _resolved(coordinates: Sequence[str], *, without: Sequence[str] = (), alone: bool = False) -> Path:
    """`alone`: these jars and none that they name."""
    full = "+".join(coordinates).replace(":", "_")
    # Of several the names would be too long for a file system.
    name = f"connector-{hashlib.sha256(full.encode()).hexdigest()[:12]}" if alone else f"jars-{full}"
    module = _ivy_module(coordinates, without, alone)
    return build_once(name, lambda folder: _fetch(coordinates, module, folder))


def _fetch(coordinates: Sequence[str], wanted: str, into: Path) -> None:
    (ivy,) = spark_jars_dir().glob("ivy-*.jar")
    print(f"• fetching {', '.join(coordinates)}: up to a minute, once", file=sys.stderr, flush=True)
    module = into / "ivy.xml"
    module.write_text(wanted)
    command = [java(), "-cp", str(ivy), "org.apache.ivy.Main", "-warn", "-m2compatible"]
    command += ["-cache", str(cache_root() / "ivy"), "-ivy", str(module), "-confs", "default"]
    command += ["-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"]
    # Ivy's own cache is not safe for two writers.
    with locked(cache_root() / ".ivy.lock"):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    module.unlink()
    # Ivy ends with 0 even when a dependency was not found.
    missing = [c for c in coordinates if not list(into.glob(f"{c.split(':')[1]}-{c.split(':')[2]}.jar"))]
    if done.returncode != 0 or missing or "UNRESOLVED" in done.stdout + done.stderr:
        raise JarsUnavailable(f"Ivy could not fetch {', '.join(coordinates)}:\n{done.stdout}{done.stderr}")


def _ivy_module(coordinates: Sequence[str], without: Sequence[str], alone: bool) -> str:
    lines = ['<ivy-module version="2.0">', '<info organisation="s3sink" module="parts"/>', "<dependencies>"]
    transitive = ' transitive="false"' if alone else ""
    for coordinate in coordinates:
        org, name, revision = (quoteattr(part) for part in coordinate.split(":"))
        # "default" of a Maven module is its compile and runtime scope: no test, optional or provided jars.
        lines.append(f'<dependency org={org} name={name} rev={revision} conf="default"{transitive}/>')
    lines += [f"<exclude module={quoteattr(name)}/>" for name in without]
    return "\n".join([*lines, "</dependencies>", "</ivy-module>", ""])


def _names_in(folder: Path) -> list[str]:
    return sorted({m[1] for jar in folder.glob("*.jar") if (m := re.match(r"(.+?)-\d", jar.name))})


if __name__ == "__main__":
    print(connector_dir())
    print(broker_dir())
