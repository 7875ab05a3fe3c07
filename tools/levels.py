"""``python -m tools.levels [--all] [--spread[=1/3]] [pytest arguments]``: tests on this CPU limited to each instruction set below its own.

Kernels, fusions and saturation depend on the instruction set, so what is green on one CPU may be red on another. Levels
run in processes of their own, as many at once as there are cores. Those whose int8 kernels are another level's or the
CPU's own, and which differ in types of floats alone, are left out without ``--all``. What the CPU itself has is what
pytest runs by default; levels above it cannot be shown here. With ``--spread`` each test runs on one of the levels, which its
name chooses (`tools.spread`): the cases of a test are on several, and all levels take the time of one. ``--spread=1/3`` runs the
first third of these, and so on. SSE4.1 is left out: there OpenVINO's own int8 layers of dynamic sizes end the process, with
stock, too. Exit status 1 where a test fails on any level.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ovlpt.device import instruction_sets
from ovlpt.openvino_api import RELEASE
from ovlpt.trace import InputError
from tools import spread

# What the instruction set has no part in: the GPU plugin's kernels, how a file is loaded and compared in time, and how a
# browser shows a page.
ELSEWHERE = tuple(
    f"--ignore=tests/{name}.py"
    for name in (
        *(f"device/test_{name}" for name in ("gpu", "gpu_numbers", "half_sums", "loaders", "virtual_gpu")),
        *(f"inspect/test_{name}" for name in ("bench", "report_in_a_browser")),
    )
)
# Each in a process of its own, the longest first, so that no core waits long for the last. Random graphs are apart for
# another reason, too: the plugin ends the process on some, where the models of other tests were compiled in it before.
PARTS = (
    ("tests/device", *ELSEWHERE),
    ("tests/inspect", "tests/main", "tests/test_beyond_native.py", *ELSEWHERE),
    tuple(f"tests/test_fuzz.py::test_{name}_the_numbers" for name in ("each_quantization_keeps", "whole_graphs_keep")),
)
_OWN = re.compile(r"--all|--spread(=[1-9]/[1-9])?")  # the arguments that are not pytest's
_NO_TEST = 5  # pytest's status where none is left of a share
WITH_KERNELS_OF_ANOTHER = ("avx512_bf16", "avx512_fp16")


def limits() -> tuple[dict[str, instruction_sets.Limits], list[str]]:
    """What each level below this CPU's own really is, and the levels that cannot be shown here."""
    below, absent = dict[str, instruction_sets.Limits](), list[str]()
    for isa in list(instruction_sets.INSTRUCTION_SETS)[1:]:
        try:
            found = instruction_sets.limits(isa)
        except InputError:
            absent.append(isa)
        else:
            if found.onednn != instruction_sets.own().onednn:
                below[isa] = found
    return below, absent


def with_other_kernels(
    below: Mapping[str, instruction_sets.Limits], own: instruction_sets.Limits
) -> dict[str, instruction_sets.Limits]:
    """The levels whose int8 kernels are no other level's, nor the CPU's own."""
    return {
        isa: limit for isa, limit in below.items() if isa not in WITH_KERNELS_OF_ANOTHER and limit.kernel != own.kernel
    }


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
    asked = [each.removeprefix("--spread").removeprefix("=") for each in options if each.startswith("--spread")]
    if not asked:
        return dict.fromkeys(levels, spread.ALL)
    part, count = map(int, (asked[0] or "1/1").split("/"))
    return {isa: f"{count * number + part - 1}/{count * len(levels)}" for number, isa in enumerate(levels)}


def run(isa: str, share: str, arguments: list[str]) -> subprocess.CompletedProcess:
    """pytest, limited to ``isa``. ``share``: as `tools.spread` reads it."""
    environment = {**os.environ, **instruction_sets.environment(isa), spread.SHARE: share}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tools.spread", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def main(arguments: list[str]) -> int:
    below, absent = limits()
    own = instruction_sets.own()
    options, arguments = {*filter(_OWN.fullmatch, arguments)}, [each for each in arguments if not _OWN.fullmatch(each)]
    if "--all" not in options:
        below = with_other_kernels(below, own)
    print(f"levels of OpenVINO {'.'.join(map(str, RELEASE))}; {own}; not to be shown: {absent}")
    shares = shares_of([*below], options)
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
