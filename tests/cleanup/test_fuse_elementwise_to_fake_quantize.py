from __future__ import annotations

import numpy as np
import pytest

from ovlpt.cleanup.fuse_elementwise_to_fake_quantize import (
    FuseMultiplyToFakeQuantizeTransformation,
    FuseSubtractToFakeQuantizeTransformation,
)
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, fake_quantize, model, parameter


def fused(operation, transformation, constant):
    graph = model(operation(fake_quantize(parameter((1, 2, 2, 2)), -1.0, 1.0), f32(constant)))
    run_pass(graph, transformation())
    quantize = next(node for node in graph.get_ops() if node.get_type_name() == "FakeQuantize")
    kinds = {node.get_type_name() for node in graph.get_ops()}
    return QuantizationDetails.of(quantize), not kinds & {"Multiply", "Subtract"}


def test_a_multiply_scales_the_output_interval():
    details, gone = fused(opset1.multiply, FuseMultiplyToFakeQuantizeTransformation, 3.0)
    assert gone
    assert (details.input_high.item(), details.output_low.item(), details.output_high.item()) == (1, -3, 3)


def test_a_subtract_shifts_it():
    details, gone = fused(opset1.subtract, FuseSubtractToFakeQuantizeTransformation, 0.5)
    assert gone
    assert (details.output_low.item(), details.output_high.item()) == (-1.5, 0.5)


@pytest.mark.parametrize(("shape", "gone"), [((1, 2, 1, 1), True), ((1, 1, 2, 1), False)])
def test_a_constant_varies_along_the_channels_only(shape, gone):
    constant = np.array([1.0, 2.0], np.float32).reshape(shape)
    assert fused(opset1.multiply, FuseMultiplyToFakeQuantizeTransformation, constant)[1] is gone
