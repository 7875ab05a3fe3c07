"""What the CPU at hand does: found by running two small layers, so limits set from outside count."""

from __future__ import annotations

import functools

import numpy as np

from ovlpt.device.execution_types import execution_types
from ovlpt.device.properties import UNCACHED, simulation
from ovlpt.graph.constants import constant
from ovlpt.graph.relaxed import own_core, relaxed
from ovlpt.openvino_api import RELEASE, Core, Model, Type, opset1
from ovlpt.plugin_config.this_cpu import takes_signed_activations, unlimited_flags


def saturates(core: Core, device: str = "CPU") -> bool:
    """Whether int8 layers on ``device`` keep sums of two products in 16 bits: true of x86 CPUs without VNNI.

    False for every other device than "CPU". `ovlpt.reference.saturation` has the arithmetic.
    """
    return device == "CPU" and _saturates(core)


@functools.lru_cache(maxsize=1)
def _saturates(core: Core) -> bool:
    data = opset1.parameter([16, 16], Type.u8)
    weights = constant(np.full((16, 16), 127), "i8")
    product = relaxed("MatMul", [data.output(0), weights.output(0)], "f32", {"transpose_a": False, "transpose_b": True})
    model = Model([opset1.result(product)], [data], "saturation")
    answer = core.compile_model(model, "CPU", simulation())([np.full((16, 16), 255, np.uint8)])[0]
    return bool((answer < 16 * 255 * 127).any())


@functools.lru_cache(maxsize=1)
def has_avx512(core: Core) -> bool:
    """Whether the CPU plugin runs a convolution with AVX-512, or AMX."""
    data = opset1.parameter([1, 16, 8, 8], Type.f32)
    weights = constant(np.ones((16, 16, 1, 1)))
    node = opset1.convolution(data, weights, [1, 1], [0, 0], [0, 0], [1, 1])
    compiled = core.compile_model(Model([opset1.result(node)], [data], "avx512"), "CPU", UNCACHED)
    return any("avx512" in layer.exec_type.lower() for layer in execution_types(compiled))


@functools.cache
def multiplies_groups_by_gemm() -> bool:
    """Whether int8 convolutions in groups run in gemm where their data has a zero point: without VNNI. It is wrong before
    a clip and a factor.
    """
    return saturates(Core())


@functools.cache
def multiplies_groups_wrongly() -> bool:
    """Whether gemm is wrong before a bias and an interval, too: with AVX-512."""
    return multiplies_groups_by_gemm() and has_avx512(Core())


@functools.cache
def has_vnni_of_512_bits() -> bool:
    """Whether int8 layers run with AVX-512 and VNNI."""
    if found := unlimited_flags():
        return "avx512_vnni" in found
    core = Core()
    return has_avx512(core) and not saturates(core)


@functools.cache
def runs_few_channels_by_gemm() -> bool:
    """Whether gemm runs int8 groups whose channels are not in fours before what is by channel: with AMX, and without AVX-512 and
    VNNI.
    """
    return takes_signed_activations() or not has_vnni_of_512_bits()


def misreads_compressed_weights() -> bool:
    """Whether kernels for compressed weights are wrong where inputs fill no whole blocks: with AMX, and before OpenVINO 2026.1
    with VNNI of any kind.
    """
    return RELEASE < (2026, 1) or takes_signed_activations()


@functools.cache
def computes_in_bf16() -> bool:
    """Whether the plugin computes floats in bf16 unless another type is asked for."""
    return "BF16" in own_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


@functools.cache
def has_512_bits() -> bool:
    """Whether convolutions run with AVX-512."""
    found = unlimited_flags()
    return "avx512f" in found if found else has_avx512(Core())


def gathers_strides() -> bool:
    """Whether strided 1x1 int8 convolutions run in kernels for AVX2: without AVX-512."""
    return not has_512_bits()


@functools.cache
def reads_few_channels_slowly() -> bool:
    """Whether brgemm runs an int8 convolution of two to four channels, with VNNI and without AMX: oneDNN's older kernels are
    faster there (docs/experiments.md). It was not measured elsewhere, or with AVX-512 alone is slower as often.

    A layer is compiled to find out only where the processor's flags do not tell.
    """
    if found := unlimited_flags():
        return bool({"avx512_vnni", "avx_vnni"} & found) and "amx_int8" not in found
    data, weights = opset1.parameter([1, 3, 8, 8], Type.u8), constant(np.ones((16, 3, 3, 3)), "i8")
    attributes = {
        "strides": [1, 1],
        "dilations": [1, 1],
        "pads_begin": [0, 0],
        "pads_end": [0, 0],
        "auto_pad": "explicit",
    }
    layer = relaxed("Convolution", [data.output(0), weights.output(0)], "f32", attributes)
    core = Core()
    compiled = core.compile_model(Model([opset1.result(layer)], [data], "channels"), "CPU", simulation())
    kernels = [each.exec_type.lower() for each in execution_types(compiled) if each.layer_type == "Convolution"]
    return not saturates(core) and any("brgconv" in kernel and "amx" not in kernel for kernel in kernels)
