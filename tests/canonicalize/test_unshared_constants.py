from __future__ import annotations

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import Params, PassConfig
from ovlpt.openvino_api import opset1
from ovlpt.predicates import marked_as_bias
from ovlpt.trace import Outcome
from tests.conftest import EXACT, Transformed, assert_close
from tests.graphs import f32, fake_quantize, model, parameter
from tests.test_beyond_native import convolution

_SHAPE = (1, 16, 16, 16)


def layers():
    """Three convolutions of data of their own, which share their bias."""
    bias = f32(np.random.default_rng(0).uniform(0.2, 1, (1, 16, 1, 1)))
    quantized = [fake_quantize(parameter(_SHAPE, name), 0.0, 2.55, name=f"fq_{name}") for name in "abc"]
    return model(*(opset1.add(convolution(each), bias) for each in quantized))


def readers(result: Transformed, name: str) -> list[int]:
    """For each operation of a type with a constant, how many read that constant."""
    nodes = (node for node in result.after.get_ops() if node.get_type_name() == name)
    return [len(node.input_value(1).get_target_inputs()) for node in nodes]


def said(result: Transformed) -> list[tuple[Outcome, str]]:
    return [(event.outcome, event.reason.code) for event in result.trace if event.transformation == "UnsharedConstants"]


def test_each_has_its_own():
    result = Transformed(layers())
    assert readers(result, "Add") == [1, 1, 1]
    assert said(result) == [(Outcome.TRANSFORMED, "shared_constant")] * 2  # the last one has it for itself
    result.assert_numbers()
    names = [node.get_friendly_name() for node in result.after.get_ops()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("constants", [(1, 16, 1, 1), (1, 1, 1, 1)])
def test_a_slope(constants):
    data = parameter(_SHAPE)
    shared = f32(np.full(constants[1], 0.1))
    result = Transformed(model(opset1.prelu(opset1.prelu(data, shared), shared)))
    assert readers(result, "PRelu") == [1, 1]


def test_with_native_only_they_share_it():
    passes = PassConfig(callbacks={"AddTransformation": marked_as_bias})
    result = Transformed(layers(), Params(native_only=True), pass_config=passes)
    assert readers(result, "Add") == [3, 3, 3]
    assert said(result) == []


def test_scales_of_dequantizations_and_whole_tensors_are_no_concern():
    scale, tensor = f32(0.1), f32(np.ones(_SHAPE))
    first, second = (opset1.multiply(opset1.convert(parameter(_SHAPE, name, np.uint8), "f32"), scale) for name in "ab")
    assert said(Transformed(model(opset1.add(opset1.add(first, tensor), opset1.add(second, tensor))))) == []


def test_a_saved_model_has_fewer_layers(core, tmp_path):
    """With the plugin's own LPT a bias that another layer reads stays a layer of its own."""
    inputs = [np.random.default_rng(seed).uniform(-1, 3, _SHAPE).astype(np.float32) for seed in range(3)]
    executed, outputs = {}, {}
    for native_only in (True, False):
        path = tmp_path / f"{native_only}.xml"
        openvino.save_model(ovlpt.transform(layers(), native_only=native_only), path, compress_to_fp16=False)
        compiled = core.compile_model(path, "CPU", EXACT | {"LP_TRANSFORMS_MODE": "NO"})
        executed[native_only] = len(ovlpt.execution_types(compiled).executed)
        outputs[native_only] = [np.array(value) for value in compiled(inputs).values()]
    stock = len(ovlpt.execution_types(core.compile_model(layers(), "CPU", EXACT)).executed)
    assert executed[False] <= stock - 3  # one a convolution
    assert_close(outputs[False], outputs[True])
