"""A release: what is built is found by what looks into it, and what it lacks is named."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from ovlpt.version import VERSION
from tools import release

LICENCE = f"ovlpt-{VERSION}.dist-info/licenses/LICENSE"


def _distributions(folder: Path, wheel: list[str], sources: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"ovlpt-{VERSION}-py3-none-any.whl", "w") as made:
        for name in wheel:
            made.writestr(name, "")
    with tarfile.open(folder / f"ovlpt-{VERSION}.tar.gz", "w:gz") as made:
        for name in sources:
            made.addfile(tarfile.TarInfo(f"ovlpt-{VERSION}/{name}"), io.BytesIO())


@pytest.mark.parametrize("lost", [None, LICENCE, "LICENSE"])
def test_what_is_built_is_looked_into(lost, tmp_path, monkeypatch):
    """Also where the folder is named from the current one, as it is by default."""
    parts = [
        [each for each in names if each != lost] for names in ((*release.IN_THE_WHEEL, LICENCE), release.IN_THE_SOURCES)
    ]
    looked_at = []

    def command(name: str, words: list[str], folder: Path):
        if name == "build":
            _distributions(Path(words[-1]), *parts)
        else:
            looked_at.extend(folder / each for each in words if VERSION in each)
        yield from ()

    monkeypatch.setattr(release, "failure", command)
    monkeypatch.setattr(release.subprocess, "run", lambda *_, **__: type("Done", (), {"stdout": b""}))
    monkeypatch.chdir(tmp_path)
    found = [*release.build(Path("dist"))]
    assert len(looked_at) == 2
    assert all(each.exists() for each in looked_at)
    assert [each.rpartition(" ")[2] for each in found] == ([] if lost is None else [lost])
