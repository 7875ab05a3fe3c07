"""``python -m tools.levels [--all] [pytest arguments]``: tests on this CPU limited to each instruction set below its own.

Kernels, fusions and saturation depend on the instruction set, so what is green on one CPU may be red on another. Each
level runs in a process of its own, as many at once as there are cores. Those that add types of floats to the int8
kernels of another are left out without ``--all``. What the CPU itself has is what pytest runs by
default; levels above it cannot be shown here. SSE4.1 is left out: there OpenVINO's own int8 layers of open sizes end the
process, with stock, too. Exit status 1 where a test fails on any level.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from ovlpt.device import instruction_sets
from ovlpt.openvino_api import RELEASE
from ovlpt.trace import InputError

DEFAULT = (
    *("tests/device", "tests/inspect", "tests/main", "tests/test_beyond_native.py"),
    *(f"--ignore=tests/device/test_{name}.py" for name in ("gpu", "gpu_numbers", "virtual_gpu")),  # another plugin
)
# Apart: on some random graphs the plugin ends the process, where the models of other tests were compiled in it before.
FUZZ = tuple(
    f"tests/test_fuzz.py::test_{name}_the_numbers" for name in ("each_quantization_keeps", "whole_graphs_keep")
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
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        runs = [(isa, part) for isa in below for part in ([arguments] if arguments else [list(DEFAULT), list(FUZZ)])]
        done = list(executor.map(lambda each: run(*each), runs))
    for (isa, _), tests in zip(runs, done, strict=True):
        lines = tests.stdout.strip().splitlines() or [tests.stderr.strip()[-300:]]
        if tests.returncode:
            print(tests.stdout[-6000:], tests.stderr[-2000:])
        print(f"{below[isa]}\n    {lines[-1]}", flush=True)
    return int(any(tests.returncode for tests in done))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
