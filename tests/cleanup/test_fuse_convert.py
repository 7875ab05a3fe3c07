from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.cleanup.fuse_convert import FuseConvertTransformation
from ovlpt.device import execution_types
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, assert_close, run_pass
from tests.graphs import f32, fake_quantize, model, parameter, run


def kinds(output):
    return [node.get_type_name() for node in run_pass(model(output), FuseConvertTransformation()).get_ordered_ops()]


@pytest.mark.parametrize(("constant", "fused"), [(3.0, True), (-3.0, False)])
def test_an_operation_reads_the_integers_themselves(constant, fused):
    """Unsigned data minus a negative constant could leave its type."""
    data = opset1.convert(parameter((1, 3), precision=np.uint8), "f32")
    assert ("Convert" not in kinds(opset1.subtract(data, f32(constant)))) is fused


def test_a_fake_quantize_keeps_its_convert():
    assert "Convert" in kinds(fake_quantize(opset1.convert(parameter((1, 3), precision=np.uint8), "f32"), 0.0, 2.55))


@pytest.mark.parametrize("operation", [opset1.add, opset1.multiply, opset1.subtract])
@pytest.mark.parametrize("stored", ["f8e4m3", "f8e5m2", "nf4", "u1"])
def test_a_type_that_no_kernel_computes_with_keeps_its_convert(stored, operation):
    data = opset1.convert(opset1.convert(parameter((1, 3)), stored), "f32")
    assert kinds(operation(data, f32(2.0))).count("Convert") == 2


@pytest.mark.parametrize("size", [8, 1])
def test_a_constant_that_settles_an_open_size(size):
    """The Convert was a layer of its own, as after an interval by column."""
    net = model(
        opset1.multiply(opset1.convert(parameter((-1, 3, -1), precision=np.uint8), "f32"), f32(np.arange(1, 9)))
    )
    values = np.arange(2 * 3 * size, dtype=np.uint8).reshape(2, 3, size)
    fused = run_pass(net.clone(), FuseConvertTransformation())
    assert "Convert" not in [node.get_type_name() for node in fused.get_ops()]
    np.testing.assert_array_equal(run(fused, [values])[0], values * np.arange(1, 9, dtype=np.float32))


@pytest.mark.parametrize("size", [8, 1])
def test_an_interval_by_column_at_open_sizes(core, infer, size):
    ends = np.linspace(1, 2, 8, dtype=np.float32)
    net = model(fake_quantize(parameter((-1, 3, -1, -1)), -ends, ends * 127 / 128))
    inputs = [np.random.default_rng(0).standard_normal((2, 3, 5, size)).astype(np.float32)]
    compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    assert_close([compiled(inputs)[0]], infer(net, inputs), level=0.02, share=0.01)
    layers = execution_types(compiled).executed
    assert not [each for each in layers if each.layer_type == "Convert" and each.output_precision == "f32"]
