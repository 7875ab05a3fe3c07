"""``python -m tools.release [-o FOLDER]``: build the wheel and the source distribution, and try both as a user would.

What is built is the last commit. Each distribution is installed in a fresh environment of each Python that is found
(3.11 and later; ``--python`` names others), where the bundled network is run and transformed. Exit status 1 where a step
fails. Nothing is uploaded. Needs the extra ``release`` and git; installing takes half a minute a distribution and Python.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ovlpt.version import VERSION

ROOT = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
IN_THE_WHEEL = (
    "ovlpt/py.typed",
    "ovlpt/data/digits.xml",
    "ovlpt/data/output.schema.json",
    "ovlpt/plugin_config/cpu.py",
)
IN_THE_SOURCES = ("LICENSE", "README.md", "CHANGELOG.md", "docs/compile.md", "tests/conftest.py", "tools/release.py")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("-o", "--output", type=Path, default=Path("dist"), metavar="FOLDER", help="default: dist")
    parser.add_argument("--python", action="append", metavar="PROGRAM", help="instead of those that are found")
    parser.add_argument("--rehearsal", action="store_true", help="a version that CHANGELOG.md calls unreleased, too")
    options = parser.parse_args()
    if f"## {VERSION}, unreleased" in (ROOT / "CHANGELOG.md").read_text() and not options.rehearsal:
        print(f"CHANGELOG.md says that {VERSION} is unreleased; write the date there, or give --rehearsal")
        return 1
    failed = [*build(options.output)]
    for python in [] if failed else options.python or [*filter(None, map(shutil.which, PYTHONS))]:
        for distribution in sorted(options.output.glob(f"ovlpt-{VERSION}*")):
            found = [*trial(python, distribution.absolute())]
            print(f"{Path(python).name}, {distribution.name}: {'; '.join(found) or 'installed, run and transformed'}")
            failed += found
    print("\n".join(failed) or f"{options.output} holds what can be uploaded")
    return bool(failed)


def build(folder: Path) -> Iterator[str]:
    """Both distributions of the last commit, in a folder that holds nothing else of this version; what is wrong."""
    folder = folder.absolute()  # commands run in folders of their own
    for old in folder.glob(f"ovlpt-{VERSION}*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as place:
        sources = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "x"], cwd=place, input=sources, check=True)
        command = [sys.executable, "-m", "build", "--outdir", str(folder)]
        yield from failure("build", command, Path(place))
    wheel, archive = folder / f"ovlpt-{VERSION}-py3-none-any.whl", folder / f"ovlpt-{VERSION}.tar.gz"
    if not (wheel.exists() and archive.exists()):
        return
    yield from failure("twine", [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive)], folder)
    with zipfile.ZipFile(wheel) as held:
        names = {*held.namelist()}
    licence = f"ovlpt-{VERSION}.dist-info/licenses/LICENSE"
    yield from (f"{wheel.name} has no {name}" for name in (*IN_THE_WHEEL, licence) if name not in names)
    with tarfile.open(archive) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    yield from (f"{archive.name} has no {name}" for name in IN_THE_SOURCES if name not in names)


def trial(python: str, distribution: Path) -> Iterator[str]:
    """What fails when a distribution is installed and used with a Python, in a folder of its own."""
    with tempfile.TemporaryDirectory() as place:
        environment = Path(place, "environment")
        ovlpt, pip = (str(environment / "bin" / name) for name in ("ovlpt", "pip"))
        steps = {
            "environment": [python, "-m", "venv", str(environment)],
            "install": [pip, "install", "--quiet", "--disable-pip-version-check", f"{distribution}[cli,report]"],
            "version": [ovlpt, "--version"],
            "run": [ovlpt, "run", "--json", "run.json"],
            "report": [ovlpt, "report", f"{environment}/digits.xml", "-o", "report.html"],
            "transform": [ovlpt, "transform", f"{environment}/digits.xml", "-o", "out.xml"],
        }
        for name, command in steps.items():
            if found := [*failure(name, command, Path(place))]:
                yield from (f"{Path(python).name}, {distribution.name}: {each}" for each in found)
                return
            if name == "install":
                (bundled,) = environment.glob("lib/python3*/site-packages/ovlpt/data")
                for path in bundled.glob("digits.*"):
                    shutil.copy(path, environment)


def failure(name: str, command: list[str], folder: Path) -> Iterator[str]:
    """What a command that failed said last; nothing for one that did not."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        yield f"{name}: status {done.returncode}, {' '.join(last)}"


if __name__ == "__main__":
    sys.exit(main())
