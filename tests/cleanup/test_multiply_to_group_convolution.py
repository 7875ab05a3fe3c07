from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.cleanup.multiply_to_group_convolution import MultiplyToGroupConvolutionTransformation
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, model, parameter

RESTRICTION = ovlpt.PrecisionsRestriction.create("GroupConvolution", {0: ["u8"], 1: ["i8"]})


@pytest.mark.parametrize(
    ("element_type", "shape", "becomes"),
    [
        (np.uint8, (1, 4, 1, 1), True),
        (np.int8, (1, 4, 1, 1), False),  # the restriction forbids it
        (np.uint8, (1, 1, 6, 1), False),  # a scale that is not that of channels
    ],
)
def test_a_scale_of_channels(element_type, shape, becomes):
    data = opset1.convert(parameter((1, 4, 6, 6), precision=element_type), "f32")
    graph = model(opset1.multiply(data, f32(np.ones(shape))))
    run_pass(graph, MultiplyToGroupConvolutionTransformation(restrictions=(RESTRICTION,)))
    assert ("GroupConvolution" in {node.get_type_name() for node in graph.get_ops()}) is becomes
