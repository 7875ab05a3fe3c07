"""``python -m tools.releases [RELEASE …]``: the commands on other releases of OpenVINO, each in a fresh virtual environment.

Without arguments three between the two that the tests run on. On each the bundled network is run, checked against the
plugin's own LPT, transformed to a file, and the file is loaded and compared with the model in memory; then come the tests
of graphs and numbers, since what a plugin does of its own has changed between any two releases, and random graphs, others
each day. Of a step that fails the tests or seeds are printed, or the last line. Exit status 1 where one fails. Meant to be run once a week: about a quarter of an hour a release.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from datetime import date
from itertools import pairwise
from pathlib import Path

DEFAULT = ("2025.0", "2025.4", "2026.1")
ROOT = Path(__file__).parents[1]
MOST = 20  # tests or seeds that are printed of a step
TESTS = (
    "device/test_compile.py",
    *sorted(path.relative_to(ROOT / "tests").as_posix() for path in ROOT.glob("tests/device/test_lowering*.py")),
    "main",
    "canonicalize",
    "graph",
    "test_hostile_surroundings.py",
)
KINDS: tuple[list[str], ...] = ([], ["--added"], ["--forms"], ["--exported"], ["--rarer"])  # of operations
COMPARE = """
import sys
import numpy, openvino, ovlpt
from ovlpt import data
from ovlpt.device.properties import EXACT
core = openvino.Core()
one = data.heldout()[0][:1]
loaded, here = core.compile_model(sys.argv[1], "CPU", EXACT), ovlpt.compile_model(data.digits(), "CPU", EXACT, core=core)
numpy.testing.assert_allclose(loaded([one])[0], here([one])[0], rtol=1e-4, atol=1e-4)
int8 = [sum(layer.is_int8 for layer in ovlpt.execution_types(each).executed) for each in (loaded, here)]
assert int8[0] == int8[1] > 0, int8
"""


def steps(environment: Path, saved: Path) -> dict[str, list[str]]:
    """What is run on a release, by its name."""
    seed = str(date.today().toordinal() * 100)
    ovlpt, python = (str(environment / "bin" / name) for name in ("ovlpt", "python"))
    digits = str(ROOT / "ovlpt" / "data" / "digits.xml")
    return {
        "run": [ovlpt, "run"],
        "check": [ovlpt, "check", digits, "--against", "stock"],
        "transform": [ovlpt, "transform", digits, "-o", str(saved)],
        "load": [python, "-c", COMPARE, str(saved)],
        "tests": [python, "-m", "pytest", "-p", "no:cacheprovider", *(str(ROOT / "tests" / each) for each in TESTS)],
        **{
            " ".join(["fuzz", *kind, "--seed", seed]): [
                python, "-m", "tools.fuzz", "numbers", "--graphs", "40", "--seed", seed, *kind,
            ]
            for kind in KINDS
        },
    }  # fmt: skip


def told(output: str, errors: str) -> str:
    """Which tests or which random graphs failed, the first of them, and how the graphs; of any other step the last line."""
    lines = output.splitlines()
    tests = [found[1] for line in lines if (found := re.match(r"(?:FAILED|ERROR) \S*?tests/(.+?)(?: - |$)", line))]
    seeds = [f"{line} ({how})" for line, how in pairwise(lines) if re.fullmatch(r"seed \d+", line)]
    if found := tests or seeds:
        more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
        return ", ".join(found[:MOST]) + more
    return "".join((errors or output).strip().splitlines()[-1:])


def failed(release: str) -> list[str]:
    """The steps that fail on ``release``, and what each says of it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        venv.create(environment, with_pip=True)
        install = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        found = []
        for name, command in {
            "install": [*install, f"{ROOT}[test]", f"openvino=={release}.*"],
            **steps(environment, Path(folder, "digits.xml")),
        }.items():
            cwd = ROOT if name.startswith("fuzz") else folder  # which is no part of the package
            done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
            if done.returncode:
                found.append(f"{name}: status {done.returncode}, {told(done.stdout, done.stderr)}")
                if name == "install":
                    break
        return found


def main(releases: list[str]) -> int:
    status = 0
    for release in releases or DEFAULT:
        found = failed(release)
        print(
            f"OpenVINO {release}:",
            "\n  ".join(["", *found]) if found else "run, check, transform, load, tests and random graphs are right",
            flush=True,
        )
        status |= bool(found)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
