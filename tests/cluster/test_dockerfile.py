"""The image built without Docker has the settings of the one built with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.image.dockerfile import UnknownInstruction, image_config

PROJECT = Path(__file__).parents[2]


def test_only_the_last_stage_counts() -> None:
    config = image_config("FROM a AS one\nUSER root\nENV A=1\nFROM b\nUSER 185\n")
    assert config == {"User": "185"}


def test_settings_over_several_lines_and_with_blanks() -> None:
    config = image_config('FROM a\n# a comment\nENV A=1 \\\n    B="two words"\nEXPOSE 8080\nENTRYPOINT ["/run"]\n')
    assert config == {
        "Env": ["A=1", "B=two words"],
        "ExposedPorts": {"8080/tcp": {}},
        "Entrypoint": ["/run"],
    }


@pytest.mark.parametrize("line", ["VOLUME /data", "ENV PATH=/opt/bin:$PATH"])
def test_what_only_docker_would_understand_is_refused(line: str) -> None:
    with pytest.raises(UnknownInstruction):
        image_config(f"FROM a\n{line}\n")


def test_our_own_image_runs_as_nobody_in_particular() -> None:
    config = image_config((PROJECT / "Dockerfile").read_text())
    assert config["User"] == "185:185"
    assert any(setting.startswith("S3SINK_JARS=") for setting in config["Env"])
