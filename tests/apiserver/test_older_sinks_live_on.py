"""A sink that an older, laxer definition let in can still be read, reported on and put right bit by bit."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from s3sink_api.spec import SpecError, parse
from tests.api.documents import minimal, put
from tests.apiserver.conftest import DEFINITION, install
from tools.cluster.client import Client, Document, Refused, sinks
from tools.polling import until

GROUP = "older.s3sink.dev"
STATUS = {"phase": "Failed", "observedGeneration": 1}


def lax(schema: Any) -> Any:
    """The same fields and types, without rules and bounds."""
    dropped = {"x-kubernetes-validations", "enum", "minimum", "maximum", "minLength", "maxLength", "maxItems"}
    match schema:
        case dict():
            return {key: lax(item) for key, item in schema.items() if key not in dropped or isinstance(item, dict)}
        case list():
            return [lax(item) for item in schema]
        case _:
            return schema


def elsewhere(definition: Document) -> Document:
    """The same under another group, so that other tests keep theirs."""
    names = {
        key: value for key, value in definition["spec"]["names"].items() if key not in {"shortNames", "categories"}
    }
    spec = definition["spec"] | {"group": GROUP, "names": names}
    return definition | {"metadata": {"name": f"s3sinks.{GROUP}"}, "spec": spec}


@pytest.fixture
def older(api: Client, namespace: str) -> str:
    """The path of a sink with three mistakes that the definition of today refuses."""
    today = elsewhere(yaml.safe_load(DEFINITION.read_text()))
    document = put(minimal(), "spec.flush.interval", "5") | {"apiVersion": f"{GROUP}/v1alpha1"}
    document = put(document, "spec.source.properties", {"sasl.jaas.config": "x"})
    document = put(document, "spec.schedule", "0 * * * *")
    every = sinks(namespace).replace("s3sink.dev", GROUP)

    def taken() -> bool | None:
        """None while the server is at neither."""
        try:
            api.try_post(every, put(document, "metadata.name", "probe"))
        except Refused as refused:
            return False if refused.code == 422 else None
        return True

    def served() -> bool:
        """Behind a changed definition the server reads everything anew, and answers 429 until it has."""
        try:
            api.list(every)
        except Refused as refused:
            if refused.code != 429:
                raise
            return False
        return True

    # A changed definition holds a moment after it was accepted.
    install(api, lax(today))
    until("the laxer definition to hold", taken, every=0.05)
    api.post(every, document)
    install(api, today)
    until("the definition of today to hold", lambda: taken() is False, every=0.05)
    until("the sinks to be read anew", served, every=0.05)
    return f"{every}/orders"


def test_it_is_read_as_it_was_stored_and_the_parser_names_its_mistakes(api: Client, older: str) -> None:
    stored = api.get(older)
    assert stored["spec"]["flush"]["interval"] == "5"
    with pytest.raises(SpecError) as caught:
        parse(stored | {"apiVersion": "s3sink.dev/v1alpha1"}, built_only=False)
    assert {error.path for error in caught.value.errors} == {
        "spec.flush.interval",
        "spec.source.properties[sasl.jaas.config]",
        "spec.schedule",
    }
    assert older.rpartition("/")[2] in [sink["metadata"]["name"] for sink in api.list(older.rpartition("/")[0])]


def test_its_status_can_be_written(api: Client, older: str) -> None:
    assert api.patch(f"{older}/status", {"status": STATUS})["status"] == STATUS
    applied = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "S3Sink", "status": STATUS | {"phase": "Pending"}}
    done = api.patch(f"{older}/status", applied, "apply", fieldManager="s3sink-operator", force="true")
    assert done["status"]["phase"] == "Pending"


def test_labels_and_other_fields_change_beside_what_is_wrong(api: Client, older: str) -> None:
    api.patch(older, {"metadata": {"labels": {"team": "data"}}})
    stored = api.patch(older, {"spec": {"destination": {"maxConnections": 7}}})
    assert stored["spec"]["destination"]["maxConnections"] == 7
    assert stored["spec"]["flush"]["interval"] == "5"


def test_what_is_wrong_cannot_be_made_worse_but_right(api: Client, older: str) -> None:
    with pytest.raises(Refused, match=r"spec\.flush\.interval"):
        api.patch(older, {"spec": {"flush": {"interval": "6"}}})
    api.patch(older, {"spec": {"flush": {"interval": "6m"}}})
    with pytest.raises(Refused, match=r"spec\.flush\.interval"):
        api.patch(older, {"spec": {"flush": {"interval": "5"}}})


def test_it_can_be_stopped_scaled_and_deleted(api: Client, older: str) -> None:
    api.patch(f"{older}/scale", {"spec": {"replicas": 5}})
    api.patch(older, {"spec": {"schedule": None, "state": "Stopped"}})
    api.delete(older)
    assert not api.exists(older)
