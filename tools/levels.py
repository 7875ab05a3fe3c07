"""``python -m tools.levels [--all] [pytest arguments]``: tests on this CPU limited to each instruction set below its own.

Kernels, fusions and saturation depend on the instruction set, so what is green on one CPU may be red on another. Levels
run in processes of their own, as many at once as there are cores. Those that add types of floats to the int8
kernels of another are left out without ``--all``. What the CPU itself has is what pytest runs by
default; levels above it cannot be shown here. SSE4.1 is left out: there OpenVINO's own int8 layers of dynamic sizes end the
process, with stock, too. Exit status 1 where a test fails on any level.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ovlpt.device import instruction_sets
from ovlpt.openvino_api import RELEASE
from ovlpt.trace import InputError

OF_ANOTHER_PLUGIN = tuple(f"--ignore=tests/device/test_{name}.py" for name in ("gpu", "gpu_numbers", "virtual_gpu"))
# Each in a process of its own, the longest first, so that no core waits long for the last. Random graphs are apart for
# another reason, too: the plugin ends the process on some, where the models of other tests were compiled in it before.
PARTS = (
    ("tests/device", *OF_ANOTHER_PLUGIN),
    ("tests/inspect",),
    ("tests/main", "tests/test_beyond_native.py"),
    tuple(f"tests/test_fuzz.py::test_{name}_the_numbers" for name in ("each_quantization_keeps", "whole_graphs_keep")),
)
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
    """The arguments of each process: of every file or folder one, with all options."""
    paths = [each for each in arguments if Path(each.partition("::")[0]).exists()]
    options = [each for each in arguments if each not in paths]
    return [(path, *options) for path in paths] or [(*part, *options) for part in PARTS]


def run(isa: str, arguments: list[str]) -> subprocess.CompletedProcess:
    """pytest, limited to ``isa``."""
    environment = {**os.environ, **instruction_sets.environment(isa)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def main(arguments: list[str]) -> int:
    below, absent = limits()
    if "--all" in arguments:
        arguments = [each for each in arguments if each != "--all"]
    else:
        below = {isa: said for isa, said in below.items() if isa not in WITH_KERNELS_OF_ANOTHER}
    print(f"levels of OpenVINO {'.'.join(map(str, RELEASE))}; {instruction_sets.own()}; not to be shown: {absent}")
    runs = [(isa, [*part]) for part in parts(arguments) for isa in below]
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        for (isa, part), tests in zip(runs, executor.map(lambda each: run(*each), runs), strict=True):
            lines = tests.stdout.strip().splitlines() or [tests.stderr.strip()[-300:]]
            if tests.returncode:
                print(tests.stdout[-6000:], tests.stderr[-2000:])
            print(f"{below[isa]}: {part[0]}\n    {lines[-1]}", flush=True)
            failed |= tests.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
