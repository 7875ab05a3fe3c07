"""Kernels of int8 layers that keep sums of integers in half precision before their scale, found in their text.

A half holds no number above 65504 and none of more than 11 bits, so such sums are infinite or lose bits. The plugin
writes a kernel as an OpenCL program whose macros ``FUSED_OP0_ACTION…``, ``FUSED_OP1_ACTION…`` hold, in order, the
operations that have become part of the layer. Each declares its result, ``half sum_out_0 = …``, and sums are scaled from
the first on that multiplies, or quantizes. What oneDNN makes is machine code from the start, and cannot be read.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ovlpt.device.execution_types import LayerExecution

_KERNEL = re.compile(r"^#define KERNEL\(name\) __kernel void (\w+)$", re.MULTILINE)
_LAYER = re.compile(r"(convolution|deconvolution|fully_connected|gemm)_")
_NUMBERS = re.compile(r"(_\d+)+$")  # after a kernel's name: a hash and its parts
_INTEGERS = re.compile(r"^#define INPUT0_TYPE u?char$", re.MULTILINE)
_HALF_SUMS = re.compile(r"^#define ACTIVATION_TYPE half$", re.MULTILINE)
_HALF_OUTPUT = re.compile(r"^#define OUTPUT_TYPE half$", re.MULTILINE)
_ACTION = re.compile(r"^#define FUSED_OP(\d+)_ACTION(\w*) \\\n((?:.*\\\n)*.*)", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/")
_RESULT = re.compile(r"\b(half|float|u?char|u?short|u?int)(?:\d+|, *\w+\))? +\w+_out_\d+(?:_tmp)? *=(.*?);")


@contextmanager
def program_texts() -> Iterator[list[str]]:
    """A list that holds, after the block, the text of each program that a virtual GPU of this process was given in it."""
    texts: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OVLPT_PROGRAMS"] = folder
        try:
            yield texts
        finally:
            del os.environ["OVLPT_PROGRAMS"]
            texts += [path.read_text(errors="replace") for path in sorted(Path(folder).iterdir())]


def half_sums(texts: Iterable[str], layers: Iterable[LayerExecution]) -> list[str]:
    """A sentence for each kernel that keeps sums of integers in half; ``layers``: what may run it."""
    kernels = dict.fromkeys(_NUMBERS.sub("", name) for text in texts for name in kernels_with_half_sums(text))
    users = {kernel: [layer.name for layer in layers if _runs(layer, kernel)] for kernel in kernels}
    return [
        f'the kernel "{kernel}" keeps sums of integers in half precision before their scale; above 65504 they are '
        f"infinite, and from 2048 on they lose bits (it runs {', '.join(names) or 'a layer that is not named'})"
        for kernel, names in users.items()
    ]


def kernels_with_half_sums(text: str) -> Iterator[str]:
    """Names, with their numbers, of the kernels in a program's text."""
    _, *parts = _KERNEL.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if _LAYER.match(name) and _INTEGERS.search(body) and _has_half_sums(body):
            yield name


def _has_half_sums(body: str) -> bool:
    chains: dict[str, list[tuple[int, str]]] = {}  # by the form, such as SCALAR, in which a kernel has its operations
    for number, form, action in _ACTION.findall(body):
        chains.setdefault(form, []).append((int(number), _COMMENT.sub("", action)))
    if _HALF_SUMS.search(body):
        return True
    return any(map(_is_half_before_scale, chains.values())) or (not chains and bool(_HALF_OUTPUT.search(body)))


def _is_half_before_scale(chain: list[tuple[int, str]]) -> bool:
    for _, action in sorted(chain):
        for precision, value in _RESULT.findall(action):
            if precision == "half":
                return True
            if "*" in value or precision not in ("half", "float"):
                return False
    return False


def _runs(layer: LayerExecution, kernel: str) -> bool:
    return layer.is_executed and layer.exec_type.startswith(f"{kernel}__")
