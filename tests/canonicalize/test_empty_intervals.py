"""FakeQuantizes of intervals without width, as a quantizer writes them of data that were 0 on every sample."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.device.compile import float_types
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT
from tests.lowered import FORMS, compiled_in
from tests.networks import const, convolution, depthwise, int8_weights, model, parameter, quantized

_WEIGHTS = np.random.default_rng(1).standard_normal((6, 6, 1, 1)) / 2
_LAYERS = {
    "convolution": lambda x: opset1.convolution(x, const(_WEIGHTS), [1, 1], [0, 0], [0, 0], [1, 1]),
    "int8": lambda x: convolution(quantized(x, -3, 3), 6, 1),
    "matmul": lambda x: opset1.matmul(x, const(_WEIGHTS[..., 0, 0]), False, True),
    "product": lambda x: opset1.matmul(x, x, False, True),
    "relu": opset1.relu,
}


def values() -> list[np.ndarray]:
    return [np.random.default_rng(0).standard_normal((5, 6, 6, 6)).astype(np.float32)]


def of_number(data, number: float):
    return opset1.fake_quantize(data, *[const(number)] * 4, 256)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [0.0, 1.5, -2.0])
@pytest.mark.parametrize("size", [-1, 6])
@pytest.mark.parametrize("layer", _LAYERS)
def test_one_number_whatever_is_read(core, tmp_path, layer, size, number, form):
    """A layer that took it in threw, and it gave no numbers after others."""
    x = parameter([-1 if size < 0 else 5, 6, size, 6])
    given = of_number(_LAYERS[layer](x), number)
    net = model([opset1.matmul(given, int8_weights([4, 6]), False, True), given], x)
    of_products, of_numbers = simulate(net, core)(values()).values()
    assert (of_numbers == number).all()
    for floats in float_types(core):
        compiled = compiled_in(form, net, core, tmp_path, INFERENCE_PRECISION_HINT=floats)
        product, found = compiled(values()).values()
        assert (found == number).all()
        assert found.shape == (5, 6, 6, 6)
        assert np.abs(product - of_products).max() <= 0.01 * np.abs(of_products).max()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [-1, 6])
@pytest.mark.parametrize("layer", _LAYERS)
def test_some_channels_that_were_0(core, tmp_path, layer, size, form):
    """After a layer such a channel was multiplied by more than any interval has, with the plugin's own LPT, too."""
    x, by_channel = parameter([-1 if size < 0 else 5, 6, size, 6]), (1, 6, 1, 1)
    low, high = (const(np.reshape(end, by_channel)) for end in ([0, 0, -1, 0, 0, -2], [2, 0, 1, 0, 3, 2]))
    net = model(depthwise(opset1.fake_quantize(_LAYERS[layer](x), low, high, low, high, 256)), x)
    expected = np.array(simulate(net, core)(values())[0])
    assert expected.any(axis=(0, 2, 3)).tolist() == [True, False, True, False, True, True]
    for floats in float_types(core):
        found = compiled_in(form, net, core, tmp_path, INFERENCE_PRECISION_HINT=floats)(values())[0]
        assert not found[:, [1, 3]].any()
        assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()


def test_layers_of_one_number_are_none_where_sizes_are_known(core):
    x = parameter([5, 6, 6, 6])
    net = model(convolution(of_number(_LAYERS["int8"](x), 0), 4), x)
    assert not ovlpt.execution_types(ovlpt.compile_model(net, "CPU", EXACT, core=core)).executed
