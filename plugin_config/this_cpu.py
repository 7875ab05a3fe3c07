"""What the configuration of a CPU depends on and no property tells: by its flags, or found by compiling a small network."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

import numpy as np
from ovlpt.plugin_config.cpu import SIGNED_ACTIVATIONS

from ovlpt.graph.constants import constant
from ovlpt.graph.relaxed import relaxed
from ovlpt.openvino_api import CompiledModel, Core, Model, Type, opset1, opset6

# All flags of a processor that oneDNN wants for the kernels of these instruction sets
_AVX_VNNI_INT8 = {"avx_vnni_int8", "avx_ne_convert"}
_AMX = {"amx_int8", "amx_bf16", "avx512_fp16"}
# Numbers of Linux on x86-64: the system call, its ARCH_REQ_XCOMP_PERM, and the tiles' data
_ARCH_PRCTL, _REQUEST, _TILES = 158, 0x1023, 18


@functools.cache
def takes_signed_activations() -> bool:
    """Whether the plugin of this machine gives an int8 convolution i8 activations; found out once per process.

    No property says so, and to ask takes as long as to compile a small network. The processor's flags tell, unless an
    instruction set limits the process.
    """
    if not SIGNED_ACTIVATIONS.get(os.environ.get("ONEDNN_MAX_CPU_ISA", ""), True):
        return False
    if (flags := _flags()) and not {"amx_int8", "avx_vnni_int8"} & flags:
        return False
    found = unlimited_flags()
    if found >= _AVX_VNNI_INT8 or (found >= _AMX and _may_use_tiles()):
        return True
    return gives_signed_activations()


def _may_use_tiles() -> bool:
    """Whether Linux gives this process the registers of AMX, which oneDNN asks for in the same way. A sandbox may refuse them
    on a processor that has them.
    """
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST, _TILES) == 0


def gives_signed_activations() -> bool:
    """The same, asked: the plugin is given a quantized convolution, with its own LPT."""
    data = opset1.parameter([1, 16, 4, 4], Type.f32)
    quantized = opset1.fake_quantize(data, *map(constant, (-1.28, 1.27, -1.28, 1.27)), 256)
    weights = opset1.fake_quantize(
        constant(np.linspace(-1, 1, 256).reshape(16, 16, 1, 1)), *map(constant, (-1, 1, -1, 1)), 255
    )
    layer = opset1.convolution(quantized, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    compiled = Core().compile_model(Model([opset1.result(layer)], [data], "question"), "CPU")
    return any(kind == "Convolution" and precision == "i8" for kind, _, precision in _layers(compiled))


@functools.cache
def multiplies_slowly() -> bool:
    """Whether the plugin of this machine has one int8 kernel for every MatMul, where a 1x1 convolution has
    one made for it; asked once a process.

    So it is with AVX2 without VNNI, where the convolution takes half of the time and less. Processors with more are not
    asked, unless an instruction set limits them.
    """
    if (found := unlimited_flags()) and ("avx2" not in found or {"avx512f", "avx_vnni"} & found):
        return False
    data, weights = opset1.parameter([1, 16, 32], Type.u8), constant(np.ones((32, 32)), "i8")
    product = relaxed("MatMul", [data.output(0), weights.output(0)], "f32", {"transpose_a": False, "transpose_b": True})
    compiled = Core().compile_model(
        Model([opset1.result(product)], [data], "question"), "CPU", {"LP_TRANSFORMS_MODE": "NO"}
    )
    return any("gemm_i8" in kernel.lower() and "brgemm" not in kernel for _, kernel, _ in _layers(compiled))


@functools.cache
def has_recurrent_kernels() -> bool:
    """Whether the plugin of this machine has int8 kernels for recurrent layers: without AVX2 it has none, and throws.

    Processors with AVX2 are not asked, unless an instruction set limits them.
    """
    if "avx2" in unlimited_flags():
        return True
    data = opset1.parameter([1, 1, 8], Type.f32)
    quantized = opset1.fake_quantize(data, *map(constant, (-1, 1, -1, 1)), 256)
    weights = opset1.fake_quantize(
        constant(np.linspace(-1, 1, 256).reshape(1, 32, 8)), *map(constant, (-1, 1, -1, 1)), 255
    )
    state, biases = constant(np.zeros((1, 1, 8))), constant(np.zeros((1, 32)))
    layer = opset6.lstm_sequence(
        quantized, state, state, constant(np.ones(1), "i32"), weights, weights, biases, 8, "forward"
    )
    try:
        Core().compile_model(
            Model([opset1.result(layer.output(0))], [data], "question"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
        )
    except RuntimeError:
        return False
    return True


def unlimited_flags() -> frozenset[str]:
    """The flags of this machine's processor; empty where no file tells, and where an instruction set limits the process."""
    is_limited = any(limit in os.environ for limit in ("OV_CPU_MAX_ISA", "ONEDNN_MAX_CPU_ISA"))
    return frozenset() if is_limited else _flags()


@functools.cache
def _flags() -> frozenset[str]:
    """Of the first processor; empty where no file tells."""
    file = Path("/proc/cpuinfo")
    return frozenset(file.read_text().partition("\n\n")[0].split() if file.exists() else ())


def _layers(compiled: CompiledModel) -> list[tuple[str, str, str]]:
    """Type, kernel and precision of what the plugin executes."""
    said = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
    return [tuple(info[key].astype(str) for key in ("layerType", "primitiveType", "runtimePrecision")) for info in said]
