"""``python -m tools.parity DIR|MODEL...``: ovlpt against the native library, network by network.

First the pass, between the plugin's own dumps, node by node; then the whole pipeline, from the model that a user has: what
is executed, in which types, with which numbers, with ``native_only`` and without, in f32 and in the CPU's default type of
floats.

A MODEL is a file of a quantized network (IR, ONNX …), a DIR a folder of such files or one with ``pre.xml`` and
``post.xml``, the model before and after the native pass, where there is no pipeline to compare. The native result is that
of the stock CPU plugin; with ``--gpu`` that of the GPU plugin on a virtual GPU, with ``--arm`` that of the native pass
under the restrictions of an ARM CPU, both of the pass only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from ovlpt.commands.arguments import add_workers
from ovlpt.commands.printing import STDOUT, console
from ovlpt.commands.workers import workers
from ovlpt.device.virtual_gpu import GPUS
from ovlpt.fleet.engine import Died, answers
from ovlpt.fleet.tasks import Task
from tools.ir import networks
from tools.parity.comparisons import compared, of_pass, of_pipeline


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.parity", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="DIR|MODEL")
    parser.add_argument("--differences", type=int, default=20, help="how many to print for each network (default 20)")
    parser.add_argument("--only", choices=("pass", "pipeline"), help="one of the two comparisons")
    plugin = parser.add_mutually_exclusive_group()
    plugin.add_argument("--gpu", default="", choices=tuple(GPUS), help="as the GPU plugin on this virtual GPU")
    plugin.add_argument("--arm", action="store_true", help="as the CPU plugin on ARM")
    add_workers(parser, resumable=False)
    options = parser.parse_args(arguments)
    has_pipeline = not options.gpu and not options.arm and options.only != "pass"
    if options.only == "pipeline" and not has_pipeline:
        parser.error("the whole pipeline is compared on the CPU of this machine only")
    work = list(_tasks(options, has_pipeline))
    unequal = 0
    with workers(options, console(STDOUT), "comparing", "comparisons") as (executor, progress):
        for task, answer in answers(work, executor, None, progress, len(work)):
            equal, line, differences = (False, str(answer), []) if isinstance(answer, Died) else answer
            unequal += not equal
            print(f"{task.label:24} {line}", flush=True)
            for difference in differences[: options.differences]:
                print(f"    {difference}")
    return 1 if unequal else 0


def _tasks(options: argparse.Namespace, has_pipeline: bool) -> Iterator[Task]:
    """One for each comparison of each network, whose files all workers can read."""
    for path in pairs_and_models(options.models):
        path = path.absolute()
        if options.only != "pipeline":
            yield Task(f"pass {path}", path.stem, compared, (of_pass, path, options.gpu, options.arm))
        if has_pipeline and not path.is_dir():
            yield Task(f"pipeline {path}", path.stem, compared, (of_pipeline, path))


def pairs_and_models(paths: list[Path]) -> Iterator[Path]:
    """Models, and folders that hold a traced pair."""
    for path in paths:
        if (path / "pre.xml").exists():
            yield path
        else:
            yield from networks([path])
            yield from sorted(path.glob("*.onnx"))
            yield from sorted(file.parent for file in path.glob("*/pre.xml"))


if __name__ == "__main__":
    sys.exit(main())
