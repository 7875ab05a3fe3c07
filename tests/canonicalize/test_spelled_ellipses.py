"""The ellipsis of a StridedSlice; the truth is numpy's, as OpenVINO's float networks are wrong in bf16, too. On a CPU that computes
in bf16 only is the unmended result wrong: elsewhere the numbers tell that the slices are the same.
"""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate, without_fake_quantize
from ovlpt.openvino_api import opset1
from tests.networks import const, model, parameter, quantized

SHAPE = (2, 5, 4)
BF16 = {"INFERENCE_PRECISION_HINT": "bf16", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
SLICES = {
    "the end": np.s_[..., 1:3],
    "the start": np.s_[1:2, ...],
    "both": np.s_[1:2, ..., 1:3],
    "no axis": np.s_[1:2, 1:4, ..., 1:3],
    "the whole": np.s_[...,],
    "one of an axis": np.s_[..., 2],
    "an axis more": np.s_[None, ..., 1:3],
    "every second": np.s_[..., 0:4:2],
}


def graph(places, is_open, quantize):
    """A slice of what a layer computes in floats, of data that is quantized or else of weights that are integers."""
    x = parameter([-1, -1, SHAPE[2]] if is_open else SHAPE)
    data = quantized(x, -32, 31.75) if quantize else x
    turning = np.eye(SHAPE[2])[::-1]
    weights = const(turning) if quantize else opset1.multiply(opset1.convert(const(turning, "i8"), "f32"), const(1))
    turned = opset1.matmul(data, weights, False, False)
    given = [each if isinstance(each, slice) else slice(0, 1) for each in places]
    taken = [int(isinstance(each, int)) for each in places]
    begins = [each if taken[axis] else given[axis].start for axis, each in enumerate(places)]
    ends = [each + 1 if taken[axis] else given[axis].stop for axis, each in enumerate(places)]
    whole, added = ([int(each is kind) for each in places] for kind in (..., None))
    steps = [each.step or 1 for each in given]
    places = (const(each, "i64") for each in (begins, ends, steps))
    return model(opset1.relu(opset1.strided_slice(turned, *places, whole, whole, added, taken, whole)), x)


def run(compiled):
    data = np.random.default_rng(0).integers(-100, 100, SHAPE) / 4  # which bf16 keeps
    return compiled([data.astype(np.float32)])[0], np.maximum(data[..., ::-1], 0)


@pytest.mark.parametrize("quantize", [False, True])
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("name", SLICES)
def test_the_result(core, name, is_open, quantize):
    """Of what lay elsewhere in memory; of fixed sizes the process ended."""
    net = graph(SLICES[name], is_open, quantize)
    lowered = ovlpt.transform(net, core=core)
    for compiled in (
        ovlpt.compile_model(net, "CPU", BF16, core=core),
        core.compile_model(lowered, "CPU", {**BF16, **ovlpt.lpt_properties(lowered, "CPU")}),
        core.compile_model(without_fake_quantize(net), "CPU", BF16),
        simulate(net, core, properties=BF16, in_f32=False),
    ):
        found, whole = run(compiled)
        np.testing.assert_array_equal(found, whole[SLICES[name]])


def test_other_ranks_are_left(core):
    x = parameter([1, *SHAPE])
    whole, places = [1, 0], (const(each, "i64") for each in ([0, 1], [0, 3], [1, 1]))
    net = model(opset1.strided_slice(quantized(x, -32, 31.75), *places, whole, whole, [0, 0], [0, 0], whole), x)
    (found,) = (node for node in ovlpt.transform(net, core=core).get_ops() if node.get_type_name() == "StridedSlice")
    assert list(found.get_attributes()["ellipsis_mask"]) == whole
