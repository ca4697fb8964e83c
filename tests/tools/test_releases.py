"""A frozen release holds all that its image is built from, wherever the files were at that time."""

from __future__ import annotations

import tarfile

import pytest

from tools.image.dockerfile import steps
from tools.releases import FrozenRelease, frozen_releases


@pytest.mark.parametrize("release", frozen_releases(), ids=lambda release: release.version)
def test_a_frozen_release_has_every_file_that_its_dockerfile_names(release: FrozenRelease) -> None:
    with tarfile.open(release.tree) as tree:
        names = {member.name for member in tree}
        file = tree.extractfile("Dockerfile")
        assert file is not None
        found = steps(file.read().decode())
    assert list(found) == ["base", "packages", "product"]
    for step in found.values():
        assert {step.script, *step.sources} <= names
