"""The image built without Docker has the settings of the one built with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.image.dockerfile import Step, UnknownInstruction, debian_suite, image_config, python_version, steps

PROJECT = Path(__file__).parents[2]


def test_only_the_last_stage_counts() -> None:
    config = image_config("FROM a AS one\nUSER root\nENV A=1\nFROM b\nUSER 185\n")
    assert config == {"User": "185"}


def test_settings_may_have_several_lines_and_blanks() -> None:
    config = image_config('FROM a\n# a comment\nENV A=1 \\\n    B="two words"\nEXPOSE 8080\nENTRYPOINT ["/run"]\n')
    assert config == {
        "Env": ["A=1", "B=two words"],
        "ExposedPorts": {"8080/tcp": {}},
        "Entrypoint": ["/run"],
    }


def test_labels_are_settings_too() -> None:
    assert image_config('FROM a\nLABEL a="one two" b=3\n')["Labels"] == {"a": "one two", "b": "3"}


def test_a_step_sees_what_was_copied_before_it() -> None:
    found = steps(
        "FROM a AS build\nCOPY pyproject.toml ./\nRUN tools/image/steps/packages.sh /out\n"
        "COPY operator operator\nRUN X=$(tools/bootstrap.sh uv) tools/image/steps/product.sh /out\n"
        "FROM a\nCOPY --from=build /out /\n"
    )
    assert found == {
        "packages": Step("tools/image/steps/packages.sh", ("pyproject.toml",)),
        "product": Step("tools/image/steps/product.sh", ("pyproject.toml", "operator")),
    }


def test_a_script_that_was_copied_elsewhere_is_found_in_the_project() -> None:
    found = steps(
        "FROM a\nCOPY tools/image/packages.txt tools/image/steps/base.sh /tmp/\nRUN /tmp/base.sh / && rm /tmp/base.sh\n"
    )
    assert found == {
        "base": Step("tools/image/steps/base.sh", ("tools/image/packages.txt", "tools/image/steps/base.sh"))
    }


@pytest.mark.parametrize("line", ["COPY operator src", "COPY README.md docs/", "COPY a/b ./"])
def test_a_copy_to_another_path_is_refused(line: str) -> None:
    with pytest.raises(UnknownInstruction, match="must be the same path"):
        steps(f"FROM a\n{line}\n")


def test_the_base_must_be_debian() -> None:
    assert debian_suite("FROM debian:trixie-slim AS base\n") == "trixie"
    with pytest.raises(UnknownInstruction, match="suite of Debian"):
        debian_suite("FROM alpine:3\n")


def test_the_python_version_comes_from_the_build_stage() -> None:
    assert python_version("FROM a\nENV PYTHON=/usr/bin/python3.11 A=b\nFROM a\nENV C=d\n") == "3.11"


@pytest.mark.parametrize("line", ["VOLUME /data", "ENV PATH=/opt/bin:$PATH"])
def test_an_instruction_that_only_docker_supports_is_refused(line: str) -> None:
    with pytest.raises(UnknownInstruction):
        image_config(f"FROM a\n{line}\n")


def test_our_image_does_not_run_as_root() -> None:
    config = image_config((PROJECT / "Dockerfile").read_text())
    assert config["User"] == "185:185"
    assert any(setting.startswith("S3SINK_JARS=") for setting in config["Env"])
