from __future__ import annotations

import base64

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3sink_api.spec import SpecError, load_file, parse
from tests.api.documents import minimal

SINK = yaml.safe_dump(minimal())
SECRET = "hunter2"


@pytest.fixture
def write(tmp_path):
    def _write(*documents: str | bytes) -> str:
        path = tmp_path / "sink.yaml"
        parts = [d if isinstance(d, bytes) else d.encode() for d in documents]
        path.write_bytes(b"\n---\n".join(parts))
        return str(path)

    return _write


def refused(path: str) -> str:
    with pytest.raises(SpecError) as caught:
        load_file(path)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_a_file_with_one_sink_is_that_sink(write):
    loaded = load_file(write(SINK))
    assert loaded.sink == parse(minimal())
    assert loaded.secrets == {}


def test_secrets_beside_the_sink_come_along_and_other_kinds_do_not_matter(write):
    encoded = base64.b64encode(b"\x00bin").decode()
    loaded = load_file(
        write(
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}",
            f"kind: Secret\nmetadata: {{name: s3}}\ndata: {{a: {encoded}, b: eA==}}\nstringData: {{b: x}}",
            SINK,
            "",
            "# only a comment",
            "kind: Secret\nmetadata: {name: empty}",
            "kind: Secret\nmetadata: {name: foreign, namespace: other}\nstringData: {a: b}",
            "kind: Secret\nmetadata: {name: ours, namespace: default}\nstringData: {a: b}",
        )
    )
    assert loaded.secrets == {"s3": {"a": b"\x00bin", "b": b"x"}, "empty": {}, "ours": {"a": b"b"}}


def test_no_sink_and_two_sinks_are_refused(write):
    assert "must hold exactly one document of kind S3Sink, got Secret" in refused(
        write("kind: Secret\nmetadata: {name: x}")
    )
    assert "got 2 of them" in refused(write(SINK, SINK))
    assert "got none" in refused(write(""))


def test_a_missing_file_is_named(tmp_path):
    assert refused(str(tmp_path / "no.yaml")) == f"{tmp_path}/no.yaml: cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a: b\n c: d\n", "2:3", "is not YAML: mapping values are not allowed here"),
        ("a: 1\nb: [1,\n", "3:1", "is not YAML"),
        ("a: 1\nb: 2\na: 3\n", "3:1", "is not YAML: found a key twice"),
        ("a: 1\n\tb: 2\n", "2:1", "is not YAML"),
        ("a: 1\nb: !!python/object:os.system x\n", "2:4", "is not YAML: could not determine a constructor"),
        ("a: 1\nb: !!int x\n", "2:4", "is not YAML: found a malformed value"),
        ("a: 1\nb: 0b_\n", "2:4", "is not YAML: found a malformed value"),
        ("a: 1\nb: !!timestamp x\n", "2:4", "is not YAML: found a malformed value"),
        ("a: 1\n---\n- b\n", "3:1", "must be a mapping, as every manifest is"),
    ],
)
def test_what_is_no_yaml_is_named_with_its_file_line_and_column(write, text, place, said):
    path = write(text)
    assert refused(path).startswith(f"{path}:{place}: {said}")


def test_what_is_no_text_is_refused(write):
    path = write(b"a: 1\nb: \xff\xfe\xff")
    assert refused(path) == f"{path}:2: is not text in UTF-8"
    path = write("a: 1\n" * 5000 + "b: \x01")
    assert refused(path) == f"{path}:5001: holds a character that YAML forbids"


@pytest.mark.parametrize(
    "secret",
    [
        f"stringData: {{a: *{SECRET}}}",
        f"stringData: {{a: !{SECRET} x}}",
        f"stringData: {{a: {SECRET}: x}}",
        f"stringData: {{a: [{SECRET}]}}",
        f"stringData: {{a: {{b: {SECRET}}}}}",
        f"stringData: {SECRET}",
        f"stringData: [{SECRET}]",
        f'stringData: {{"a/{SECRET}": b}}',
        f"stringData: {{'{SECRET}: b}}",
        f'stringData: {{a: "\\x{SECRET}"}}',
        f"data: {{a: {SECRET}!}}",
        f"data: {{a: é{SECRET}}}",
        f"data: {SECRET}",
        f"data: &a {{b: &a {SECRET} }}\nx: *{SECRET}",
    ],
)
def test_a_broken_secret_is_refused_without_being_repeated(write, secret):
    refused(write(SINK, f"kind: Secret\nmetadata: {{name: s3}}\n{secret}"))


@pytest.mark.parametrize("key", ["..", "../x", "a/b", "..data"])
def test_a_secret_cannot_lead_out_of_its_folder(write, key):
    assert "must have keys of" in refused(
        write(SINK, f'kind: Secret\nmetadata: {{name: s3}}\nstringData: {{"{key}": x}}')
    )
    assert "metadata.name" in refused(write(SINK, f'kind: Secret\nmetadata: {{name: "{key}"}}'))


def test_unquoted_dates_reach_us_as_kubectl_sends_them(write):
    text = SINK + "  state: Running\n"
    document = yaml.safe_load(text)
    document["spec"]["source"]["startingOffsets"] = {"position": "Timestamp", "timestamp": "T"}
    document["metadata"]["labels"] = {"day": "D"}
    text = yaml.safe_dump(document).replace("timestamp: T", "timestamp: 2026-01-01T00:00:00Z")
    sink = load_file(write(text.replace("day: D", "day: 2026-01-01"))).sink
    assert sink.metadata.labels == {"day": "2026-01-01"}
    assert sink.spec.source.starting_offsets.timestamp.year == 2026


def test_keys_that_merge_from_an_anchor_are_no_repetition(write):
    text = "x: {y: {z: &a {<<: {k: 1}, k: 2}}}\nw: {<<: *a, k: 3}\nkind: ConfigMap"
    assert load_file(write(text, SINK)).sink.metadata.name == "orders"


def test_a_file_nested_too_deeply_is_refused(write):
    assert "nested too deeply" in refused(write("a: " + "[" * 5000))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet="ab01:-[]{}&*!|>'\"%@`#,? \n\t\\.é\x01\ud7ff", max_size=40))
def test_no_file_raises_anything_but_a_spec_error(write, text):
    with pytest.raises(SpecError):
        load_file(write(text))
