"""Intervals by rows or columns after a product, which the plugin fuses into it along another axis."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, opset1
from tests.lowered import FORMS
from tests.networks import const, model, parameter, quantized

_ROWS, _SIZE = 12, 16
_HIGHEST = np.linspace(0.2, 2, _ROWS, dtype=np.float32)


def _quantize(values: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    step = (high - low) / np.float32(255)
    return np.round((np.clip(values, low, high) - low) / step) * step + low


def _softmax(values: np.ndarray) -> np.ndarray:
    found = np.exp(values - values.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)


# What follows a product, and the same in numpy, by the ends of an interval
AFTER = {
    "activation": (
        lambda s, ends: opset1.fake_quantize(opset1.tanh(s), *ends, *ends, 256),
        lambda s, high: _quantize(np.tanh(s), -high, high),
    ),
    "scale after an activation": (
        lambda s, ends: quantized(opset1.multiply(opset1.tanh(s), ends[1]), -1, 1.25),
        lambda s, high: _quantize(np.tanh(s) * high, -1, 1.25),
    ),
    "scores": (
        lambda s, ends: opset1.softmax(opset1.fake_quantize(s, *ends, *ends, 256), 2),
        lambda s, high: _softmax(_quantize(s, -high, high)),
    ),
    "Relu": (
        lambda s, ends: opset1.fake_quantize(opset1.relu(s), const(0), ends[1], const(0), ends[1], 256),
        lambda s, high: _quantize(np.maximum(s, 0), 0, high),
    ),
}


def product(after: str, axis: str) -> tuple[Model, list[np.ndarray], np.ndarray]:
    """A product of two tensors and what follows it, of one head; inputs; and the result by numpy."""
    high = _HIGHEST.reshape((1, _ROWS, 1) if axis == "rows" else (1, 1, _ROWS))
    factors = [parameter([1, _ROWS, _SIZE], name=name) for name in ("q", "k")]
    follows, by_numpy = AFTER[after]
    scores = opset1.matmul(*(quantized(each, -2, 2) for each in factors), False, True)
    net = model(follows(scores, [const(-high), const(high)]), factors)
    inputs = [np.random.default_rng(seed).uniform(-1, 1, (1, _ROWS, _SIZE)).astype(np.float32) for seed in range(2)]
    first, second = (_quantize(values, -2, 2) for values in inputs)
    return net, inputs, by_numpy(first @ second.swapaxes(1, 2), high)


@pytest.mark.parametrize("threads", [{}, {"INFERENCE_NUM_THREADS": 1}], ids=["threads", "one thread"])
@pytest.mark.parametrize("sizes", [(1, 12, 16), (-1, 12, 16), (1, -1, 16)], ids=["fixed", "batch", "rows"])
@pytest.mark.parametrize("axis", ["rows", "columns"])
@pytest.mark.parametrize("after", AFTER)
def test_an_interval_by_rows_or_columns_of_a_product(core, by_form, after, axis, sizes, threads):
    """The one of a row was read as that of a column, stock and simulation likewise; of open sizes one of columns threw."""
    net, inputs, expected = product(after, axis)
    net.reshape({net.inputs[0]: sizes, net.inputs[1]: (sizes[0], _ROWS, _SIZE)})
    found = {form: by_form(net, inputs, form, **threads) for form in FORMS}
    found["simulation"] = simulate(net, core, properties=threads)(inputs)[0]
    level = 0.02 * float(np.abs(expected).max())
    assert {form for form, values in found.items() if np.abs(values - expected).max() > level} == set()
