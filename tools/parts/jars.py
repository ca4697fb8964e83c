"""Fetches jars from Maven Central, with the Ivy that PySpark contains.

Of the connector it fetches only the jars in versions.toml: Spark contains the rest.

    python -m tools.parts.jars              fetches what the sink and the broker need, unless it is in the cache
    python -m tools.parts.jars --tests      also what only tests need
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

from tools.parts.cache import build_once, cache_root, locked
from tools.parts.versions import section, version


class JarsUnavailable(Exception):
    """The jars are not in the cache and cannot be fetched."""


def java() -> str:
    """The `java` program: that of JAVA_HOME, if set, or the first on PATH."""
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
    """The folder with the jars of Spark's Kafka connector, for `S3SINK_JARS`.

    `versions` is the section `spark` of another release's versions.toml.
    """
    coordinates = [*(versions or section("spark")).values()]
    if len(coordinates) == 1:
        # Release 0.1.0 lists only the connector, and Ivy resolves the rest: without exclusions that is all of Hadoop.
        return _resolved(coordinates, without=_names_in(spark_jars_dir()))
    return _resolved(coordinates, alone=True)


def connector_jars() -> list[Path]:
    return sorted(connector_dir().glob("*.jar"))


def broker_dir() -> Path:
    return _resolved([version("kafka", "broker"), version("kafka", "broker_logging")])


def broker_jars() -> list[Path]:
    return sorted(broker_dir().glob("*.jar"))


def connect_json_jars() -> list[Path]:
    return sorted(_resolved([version("kafka", "connect_json")]).glob("*.jar"))


def avro_serializer_jars() -> list[Path]:
    return sorted(_resolved([version("apicurio", "avro_serializer")]).glob("*.jar"))


def protobuf_serializer_jars() -> list[Path]:
    return sorted(_resolved([version("apicurio", "protobuf_serializer")]).glob("*.jar"))


def json_schema_serializer_jars() -> list[Path]:
    return sorted(_resolved([version("apicurio", "json_schema_serializer")]).glob("*.jar"))


def glue_serializer_jars() -> list[Path]:
    return sorted(_resolved([version("glue", "serializer")]).glob("*.jar"))


def _resolved(coordinates: Sequence[str], *, without: Sequence[str] = (), alone: bool = False) -> Path:
    """`alone`: without their dependencies."""
    full = "+".join(coordinates).replace(":", "_")
    # The names of several jars would be too long for a file name.
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
    if "--tests" in sys.argv:
        jars = [*avro_serializer_jars(), *protobuf_serializer_jars(), *json_schema_serializer_jars()]
        print(*connect_json_jars(), *jars, *glue_serializer_jars(), sep="\n")
