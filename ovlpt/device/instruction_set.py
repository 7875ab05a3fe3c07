"""What the CPU's int8 kernels are made for, in oneDNN's words."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys

import numpy as np

from ovlpt.graph.constants import constant
from ovlpt.openvino_api import Core, Model, opset1


@functools.cache
def instruction_set() -> str | None:
    """What oneDNN's log calls the instruction set: "Intel AVX2", "Intel AVX-512 with Intel DL Boost" …

    A process of its own compiles one convolution, since oneDNN reads its settings once. None where it says nothing.
    """
    run = "from ovlpt.device import instruction_set; instruction_set.compile_convolution()"
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {run}"]
    environment = {**os.environ, "ONEDNN_VERBOSE": "profile_create"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = re.search(r"^onednn_verbose.*,cpu,isa:(.*)$", done.stdout, re.MULTILINE)
    return found[1].strip() if found else None


def has_vnni(instructions: str | None) -> bool | None:
    """Whether an x86 CPU adds four products of 8-bit numbers in 32 bits; None for what is no x86 CPU, or not known."""
    if instructions is None or "Intel" not in instructions:
        return None
    return "DL Boost" in instructions or "AMX" in instructions


def compile_convolution() -> None:
    data = opset1.parameter([1, 16, 8, 8])
    node = opset1.convolution(data, constant(np.ones((16, 16, 1, 1), np.float32)), [1, 1], [0, 0], [0, 0], [1, 1])
    Core().compile_model(Model([node], [data], "convolution"), "CPU")
