"""Older CPUs on this one: the plugin limited to an instruction set, in a process of its own.

``ONEDNN_MAX_CPU_ISA`` limits oneDNN, whose kernels run convolutions and matrix products, ``OV_CPU_MAX_ISA`` the
plugin's own code. Both are read once a process, and a value that is unknown or beyond the CPU is ignored silently, so
`limits` shows what came of it. OpenVINO before 2026.4.1 does not have the second variable.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from ovlpt import data
from ovlpt.choices import INSTRUCTION_SETS as INSTRUCTION_SETS
from ovlpt.device import subprocess_call
from ovlpt.device.execution_types import execution_types
from ovlpt.openvino_api import RELEASE, Core
from ovlpt.trace import InputError

_BEFORE_BF16 = ("sse41", "avx2", "avx2_vnni")


@dataclass(frozen=True)
class Limits:
    """What a limited process really is."""

    isa: str
    onednn: str  # oneDNN's own words
    kernel: str  # exec type of an int8 convolution: jit_avx2_I8
    capabilities: tuple[str, ...]  # the device's OPTIMIZATION_CAPABILITIES

    def __str__(self) -> str:
        text = f"{self.isa}: oneDNN runs as {self.onednn}, convolutions in {self.kernel}"
        if RELEASE < (2025, 0):
            text += "; this OpenVINO has no OV_CPU_MAX_ISA, so the plugin's own code uses what the CPU has"
        return text


def check_device(device: str) -> None:
    """Raise `InputError` where an instruction set is asked for and the device is not the CPU."""
    if device != "CPU":
        raise InputError(f'an instruction set needs the device "CPU", not "{device}"')


def environment(isa: str) -> dict[str, str]:
    """The variables for a process. Raises `InputError` for an unknown name."""
    if isa not in INSTRUCTION_SETS:
        raise InputError(f'no instruction set "{isa}"; there are {", ".join(INSTRUCTION_SETS)}')
    value = INSTRUCTION_SETS[isa][0]
    return {"OV_CPU_MAX_ISA": value, "ONEDNN_MAX_CPU_ISA": value}


@functools.cache
def limits(isa: str) -> Limits:
    """Compile a small quantized network in a limited process, and read what oneDNN says of its instruction set.

    Raises `InputError` where ``isa`` is unknown or does not take effect.
    """
    found = _asked(isa, environment(isa))
    if found.onednn not in INSTRUCTION_SETS[isa][1:]:
        raise InputError(f'the instruction set "{isa}" does not take effect on this CPU: oneDNN runs as {found.onednn}')
    if isa in _BEFORE_BF16 and "BF16" in found.capabilities:
        raise InputError(
            f'the instruction set "{isa}" limits oneDNN alone, and this OpenVINO\'s own code still asks it for bf16; '
            "OpenVINO 2026.4.1 limits both"
        )
    return found


@functools.cache
def own() -> Limits:
    """The same of a process that is not limited."""
    return _asked("own", {variable: "" for variable in environment("avx2")})


def _asked(isa: str, variables: dict[str, str]) -> Limits:
    (kernel, capabilities), printed = subprocess_call.call(
        _first_kernel, environment={**variables, "ONEDNN_VERBOSE": "1"}
    )
    said = re.search(r"cpu,isa:(.*)", printed)
    return Limits(isa, said[1].strip() if said else "nothing", kernel, capabilities)


def _first_kernel() -> tuple[str, tuple[str, ...]]:
    core = Core()
    layers = execution_types(core.compile_model(str(data.digits()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}))
    kernel = next(layer.exec_type for layer in layers if layer.layer_type == "Convolution")
    return kernel, tuple(core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"))
