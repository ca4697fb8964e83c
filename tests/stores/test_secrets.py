"""A missing Secret stops the sink: without its settings it would do something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from s3sink_job.base.errors import FinalError
from s3sink_job.base.secrets import Secrets, write_secrets


def test_a_secret_reads_back_as_it_was_mounted(tmp_path: Path) -> None:
    secrets = write_secrets(tmp_path, {"auth": {"user": b"me\n", "password": b"x"}})
    assert secrets.read("auth") == {"user": "me", "password": "x"}


@pytest.mark.parametrize("mounted", [True, False])
def test_a_secret_mounted_as_an_empty_folder_is_missing(tmp_path: Path, mounted: bool) -> None:
    if mounted:
        (tmp_path / "auth").mkdir()
    with pytest.raises(FinalError, match="'auth'") as caught:
        Secrets(str(tmp_path)).read("auth")
    assert caught.value.reason == "SecretMissing"


def test_a_binary_key_is_named_without_its_content(tmp_path: Path) -> None:
    secrets = write_secrets(tmp_path, {"auth": {"store.jks": b"\xfe\xed"}})
    with pytest.raises(FinalError, match=r"store\.jks"):
        secrets.read("auth")
