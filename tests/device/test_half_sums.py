"""Kernels of int8 layers that keep integer sums in half precision are found in their text."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device import subprocess_call, virtual_gpu
from ovlpt.device.virtual_gpu.half_sums import half_sums, kernels_with_half_sums, program_texts
from ovlpt.graph.constants import constant
from ovlpt.graph.relaxed import relaxed
from ovlpt.graph.stamp import SECTION
from ovlpt.openvino_api import RELEASE, Core, Model, opset1
from tests.gpu_networks import NETWORKS
from tests.networks import const, model, parameter

KNOWN = [
    gpu
    for gpu, how in virtual_gpu.GPUS.items()
    if how != virtual_gpu.NO_INT8 and virtual_gpu.SINCE.get(gpu, RELEASE) <= RELEASE
]
FLOAT = "float sum_out_0_tmp = sum*data;\\\n\thalf sum_out_0 = convert_half(sum_out_0_tmp);"
HALF_CLAMP = "half sum_out_0 = convert_half(sum);\\\n\tsum_out_0 = convert_half(clamp(sum_out_0, a/*1*/, b));"
FLOAT_CLAMP = HALF_CLAMP.replace("half", "float")


def kernel(*actions: str, name: str = "convolution_gpu_1_0_0", reads: str = "uchar", more: str = "") -> str:
    lines = [f"#define KERNEL(name) __kernel void {name}", f"#define INPUT0_TYPE {reads}", more]
    lines += [f"#define FUSED_OP{at}_ACTION_SCALAR \\\n\t{action}" for at, action in enumerate(actions)]
    return "\n".join([*lines, "#define FUSED_OPS_CALC_SCALAR \\\n\tFUSED_OP0_ACTION_SCALAR", ""])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (kernel(FLOAT), False),  # half is what leaves the scale
        (kernel(HALF_CLAMP, FLOAT.replace("_0", "_1")), True),
        (kernel(FLOAT_CLAMP, FLOAT.replace("_0", "_1")), False),
        (kernel("half8 sum_out_0_tmp = sum*data;"), True),
        (kernel("MAKE_VECTOR_TYPE(half, 2) sum_out_0 = sum+data;"), True),
        (kernel("uchar sum_out_0 = convert_uchar_sat_rte(sum);", "half sum_out_1 = sum_out_0;"), False),
        (kernel(FLOAT, HALF_CLAMP.replace("_0", "_1")), False),
        (kernel(FLOAT, more="#define ACTIVATION_TYPE half"), True),
        (kernel(more="#define OUTPUT_TYPE half"), True),  # as they are
        (kernel(more="#define OUTPUT_TYPE float"), False),
        (kernel(HALF_CLAMP, reads="half"), False),
        (kernel(HALF_CLAMP, name="eltwise_ref_1_0_0"), False),
    ],
)
def test_what_a_text_says(text, found):
    assert list(kernels_with_half_sums(f"// a program\n{text}{kernel(FLOAT, name='gemm_ref_2_0_0')}")) == (
        ["convolution_gpu_1_0_0"] if found else []
    )


def clamped_in_half() -> Model:
    """As lowered for a GPU in half precision, but with sums and a Clamp before their scale that report f16."""
    x = parameter([4, 64])
    ends = [const(value).output(0) for value in (-1.28, 1.27, -128.0, 127.0)]
    low = relaxed("FakeQuantize", [x.output(0), *ends], "i8", {"levels": 256, "auto_broadcast": "numpy"})
    weights = const(np.random.default_rng(0).integers(-127, 128, [32, 64]), "i8")
    attributes = {"transpose_a": False, "transpose_b": True}
    sums = relaxed("MatMul", [low.output(0), weights.output(0)], "f16", attributes)
    sums.set_friendly_name("sums")
    scaled = opset1.multiply(opset1.clamp(sums, -60000.0, 60000.0), constant(np.linspace(0.001, 0.002, 32), "f16"))
    net = model(opset1.convert(scaled, "f32"), x)
    for key in ("transformed", "lowered"):
        net.set_rt_info("GPU", [SECTION, key])
    return net


@pytest.mark.parametrize("gpu", virtual_gpu.EXECUTABLE)
def test_a_clamp_in_half_is_found(gpu):
    notes = ovlpt.check(clamped_in_half(), "GPU", virtual=gpu, precision="f16", numbers=False).notes
    assert any("_imad" in note and "keeps sums of integers in half precision" in note for note in notes), notes


def warnings(names: tuple[str, ...], gpu: str) -> list[str]:
    """Of today's lowering, on a GPU of its own process."""
    virtual_gpu.load(gpu)
    core, found = Core(), []
    for name in names:
        with program_texts() as texts:
            properties = {"INFERENCE_PRECISION_HINT": "f16", **virtual_gpu.properties(gpu)}
            compiled = ovlpt.compile_model(NETWORKS[name](), "GPU", properties, core=core)
        assert any("__kernel void" in text for text in texts)
        found += half_sums(texts, ovlpt.execution_types(compiled))
    return found


@pytest.mark.parametrize("gpu", KNOWN)
def test_no_layer_keeps_sums_in_half(gpu):
    names = ("mlp", "residual", "depthwise", "pooled_sums", "weights_zero_point_by_channel")
    assert not subprocess_call.call(warnings, names, gpu)[0]
