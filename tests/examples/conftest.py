from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from tests.examples.running import Place
from tests.examples.shop import open_shop
from tools.parts.kafka import KafkaBroker
from tools.parts.registry import SchemaRegistry
from tools.parts.s3 import Moto, S3Server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def glue() -> Iterator[Moto]:
    """AWS Glue Schema Registry."""
    with Moto() as server:
        yield server


@pytest.fixture(scope="session")
def shop(registry: SchemaRegistry, glue: Moto) -> Iterator[KafkaBroker]:
    """A separate broker, because manifests name their topics."""
    with KafkaBroker(secure=True) as broker:
        open_shop(broker, registry, glue)
        yield broker


@pytest.fixture(scope="session")
def places(
    shop: KafkaBroker,
    s3: S3Server,
    registry: SchemaRegistry,
    glue: Moto,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[], Place]:
    """Makes places with their own buckets."""
    return lambda: Place(
        *(shop, s3, registry, glue, spark, tmp_path_factory.mktemp("place")), f"{os.getpid()}-{next(_numbers)}"
    )


@pytest.fixture
def place(places: Callable[[], Place]) -> Place:
    return places()
