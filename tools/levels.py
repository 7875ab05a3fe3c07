"""``python -m tools.levels [--all] [--spread[=1/2]] [pytest arguments]``: tests on this CPU limited to each instruction set below its own.

Kernels, fusions and saturation depend on the instruction set, so what is green on one CPU may be red on another. Levels
run in processes of their own, as many at once as there are cores. Those that add types of floats to the int8
kernels of another are left out without ``--all``. What the CPU itself has is what pytest runs by
default; levels above it cannot be shown here. With ``--spread`` each test runs on one of the levels, which its name chooses
(`tools.spread`): the cases of a test are on several, and all levels take the time of one. ``--spread=1/2`` runs the first
half of them, ``--spread=2/2`` the others: two releases take the time of one. SSE4.1 is left out: there OpenVINO's own int8
layers of dynamic sizes end the process, with stock, too. Exit status 1 where a test fails on any level.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ovlpt.device import instruction_sets
from ovlpt.openvino_api import RELEASE
from ovlpt.trace import InputError
from tools import spread

# What the instruction set has no part in: the GPU plugin's kernels, and how a browser shows a page.
ELSEWHERE = tuple(
    f"--ignore=tests/{name}.py"
    for name in (
        *(f"device/test_{name}" for name in ("gpu", "gpu_numbers", "half_sums", "virtual_gpu")),
        "inspect/test_report_in_a_browser",
    )
)
# Each in a process of its own, the longest first, so that no core waits long for the last. Random graphs are apart for
# another reason, too: the plugin ends the process on some, where the models of other tests were compiled in it before.
PARTS = (
    ("tests/device", *ELSEWHERE),
    ("tests/inspect", "tests/main", "tests/test_beyond_native.py", *ELSEWHERE),
    tuple(f"tests/test_fuzz.py::test_{name}_the_numbers" for name in ("each_quantization_keeps", "whole_graphs_keep")),
)
_OWN = frozenset(("--all", "--spread", "--spread=1/2", "--spread=2/2"))  # the arguments that are not pytest's
_NO_TEST = 5  # pytest's status where none is left of a share
WITH_KERNELS_OF_ANOTHER = ("avx512_bf16", "avx512_fp16")


def limits() -> tuple[dict[str, str], list[str]]:
    """What oneDNN says of itself on each level below this CPU's own, and the levels that cannot be shown here."""
    below, absent = {}, []
    for isa in list(instruction_sets.INSTRUCTION_SETS)[1:]:
        try:
            found = instruction_sets.limits(isa)
        except InputError:
            absent.append(isa)
        else:
            if found.onednn != instruction_sets.own().onednn:
                below[isa] = str(found)
    return below, absent


def parts(arguments: list[str]) -> Sequence[Sequence[str]]:
    """The arguments of each process: one for what is of one folder, with all options."""
    paths = [each for each in arguments if Path(each.partition("::")[0]).exists()]
    options = [each for each in arguments if each not in paths]
    folders: dict[Path, list[str]] = {}
    for path in paths:
        folders.setdefault(Path(path.partition("::")[0]).parent, []).append(path)
    return [(*each, *options) for each in folders.values()] or [(*part, *options) for part in PARTS]


def shares_of(levels: Sequence[str], options: Set[str]) -> dict[str, str]:
    """What each level runs, as `tools.spread` reads it."""
    halves = [int(each[-3]) - 1 for each in options if each.endswith("/2")]
    step, first = (2, halves[0]) if halves else (1, 0)
    if not halves and "--spread" not in options:
        return dict.fromkeys(levels, spread.ALL)
    return {isa: f"{step * number + first}/{step * len(levels)}" for number, isa in enumerate(levels)}


def run(isa: str, share: str, arguments: list[str]) -> subprocess.CompletedProcess:
    """pytest, limited to ``isa``. ``share``: as `tools.spread` reads it."""
    environment = {**os.environ, **instruction_sets.environment(isa), spread.SHARE: share}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tools.spread", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def main(arguments: list[str]) -> int:
    below, absent = limits()
    own, arguments = _OWN & {*arguments}, [each for each in arguments if each not in _OWN]
    if "--all" not in own:
        below = {isa: said for isa, said in below.items() if isa not in WITH_KERNELS_OF_ANOTHER}
    print(f"levels of OpenVINO {'.'.join(map(str, RELEASE))}; {instruction_sets.own()}; not to be shown: {absent}")
    shares = shares_of([*below], own)
    runs = [(isa, shares[isa], [*part]) for part in parts(arguments) for isa in below]
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        for (isa, share, part), tests in zip(runs, executor.map(lambda each: run(*each), runs), strict=True):
            lines = tests.stdout.strip().splitlines() or [tests.stderr.strip()[-300:]]
            is_red = tests.returncode not in (0, _NO_TEST if share != spread.ALL else 0)
            if is_red:
                print(tests.stdout[-6000:], tests.stderr[-2000:])
            print(f"{below[isa]}: {part[0]}\n    {lines[-1]}", flush=True)
            failed |= is_red
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
