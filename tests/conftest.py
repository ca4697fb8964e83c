"""The real parts, one of each per test run, and names in them that no other test uses."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from e2e.parts.classes import class_archive
from e2e.parts.commands import Commands
from e2e.parts.kafka import KafkaBroker
from e2e.parts.proxy import FaultProxy
from e2e.parts.s3 import S3Server, Versitygw

_numbers = itertools.count(1)


BY_FILE = {"crash", "engine", "formats", "records"}
"""Folders that take long, and whose tests share only what every process of a run has anyway."""
LONG = ("crash", "chaos", "cli", "apiserver", "charts", "argocd", "examples", "engine")
"""Begun first, so that no process is left alone with one of them at the end."""
_HERE = Path(__file__).parent


def pytest_configure() -> None:
    """Drivers start with half of the CPU time where `make test` has seen to it."""
    if (archive := class_archive()).exists():
        os.environ["S3SINK_CLASSES"] = str(archive)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(name) if (name := _folder(item)) in LONG else len(LONG))


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""


class ByFolder(LoadScopeScheduling):
    """Where several processes share the tests, those of a folder stay together: they share a server or a session.

    xdist's own groups rename tests, which pytest 9.2 does not let it do any more: it says nothing, and groups nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = PurePosixPath(nodeid.partition("::")[0])
        return str(file if file.parent.name in BY_FILE else file.parent)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFolder:
    config.option.loadscopereorder = False
    return ByFolder(config, log)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """One broker for each process of a run, with a SASL_SSL listener beside the plain one."""
    with KafkaBroker(secure=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3 server for each process of a run."""
    with Versitygw() as server:
        yield server


@pytest.fixture(scope="session")
def s3sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """The command, where it need not be a process of its own."""
    with Commands(tmp_path_factory.mktemp("s3sink") / "log") as running:
        yield running


@pytest.fixture
def bucket(s3: S3Server, request: pytest.FixtureRequest) -> str:
    """A fresh bucket."""
    return s3.create_bucket(_unique(request))


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses; the topic is not made yet."""
    return _unique(request)


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    """A proxy without faults before the S3 server: give its `endpoint` to what you test."""
    with FaultProxy("127.0.0.1", s3.port) as between:
        yield between


def _unique(request: pytest.FixtureRequest) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_")).strip("-")
    return f"{words[:40].rstrip('-')}-{os.getpid()}-{next(_numbers)}"
