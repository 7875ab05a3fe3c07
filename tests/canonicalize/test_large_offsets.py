from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt import Params
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, opset1, opset8
from tests.conftest import EXACT, Transformed
from tests.graphs import f32, i64
from tests.networks import const, parameter, quantized

_LENGTH, _HEADS, _WIDTH = 12, 2, 8
_LEAST = float(np.finfo(np.float32).min)


def _positions() -> np.ndarray:
    return np.random.default_rng(1).uniform(-8, 8, (1, _HEADS, _LENGTH, _LENGTH)).astype(np.float32)


def _masking(kind: str, mask, least: float):
    if kind == "added":  # mask * -least + least
        return opset1.add(opset1.multiply(mask, f32(-least)), f32(least))
    if kind == "less one":  # (mask - 1) * -least
        return opset1.multiply(opset1.subtract(mask, f32(1)), f32(-least))
    return opset1.multiply(f32(least), opset1.subtract(f32(1), mask))


def graph(kind: str = "", least: float = _LEAST, stored: bool = False, cut: bool = False) -> Model:
    """Scores of an attention, with a bias by position, of which those that a mask hides have none.

    ``stored``: the bias is integers; ``cut``: it is cut to a length that is read from a shape.
    """
    query, mask = parameter([1, _HEADS, _LENGTH, _WIDTH], name="query"), parameter([1, _LENGTH], "i64", "mask")
    scores = opset1.matmul(quantized(query, -4, 4), quantized(query, -4, 4), False, True)
    bias = const(_positions())
    if stored:
        integers = np.rint(_positions() * 15).astype(np.int8)
        bias = opset1.multiply(opset1.convert(opset1.constant(integers), "f32"), f32(1 / 15))
    if cut:
        length = opset8.gather(opset1.shape_of(query), i64(2), opset1.constant(0))
        bias = opset8.slice(bias, i64(0), length, i64(1), i64(3))
    shown = opset1.convert(opset1.unsqueeze(mask, i64(1, 2)), "f32")
    shares = opset1.softmax(opset1.add(scores, opset1.add(bias, _masking(kind, shown, least))), 3)
    return Model([opset1.result(shares)], [query, mask], "scores")


def arrays() -> list[np.ndarray]:
    mask = np.ones((1, _LENGTH), np.int64)
    mask[0, 9:] = 0
    query = np.random.default_rng(2).uniform(-1, 1, (1, _HEADS, _LENGTH, _WIDTH)).astype(np.float32)
    return [query, mask]


def truth(stored: bool = False) -> np.ndarray:
    query, mask = arrays()
    step = 8 / 255
    real = (np.clip(np.rint((query + 4) / step), 0, 255) * step - 4).astype(np.float64)
    bias = np.rint(_positions() * 15) / 15 if stored else _positions()
    exponents = np.exp(real @ real.swapaxes(2, 3) + bias) * mask[:, None, None, :]
    return exponents / exponents.sum(-1, keepdims=True)


_CASES = [
    dict(kind="", least=_LEAST), dict(kind="added", least=_LEAST), dict(kind="less one", least=-1e9),
    dict(kind="", least=-1e4), dict(stored=True), dict(cut=True), dict(stored=True, cut=True, kind="added"),
]  # fmt: skip


@pytest.mark.parametrize("sizes", ["fixed", "open"])
@pytest.mark.parametrize("case", _CASES, ids=str)
def test_positions_are_not_rounded_away(core, case, sizes):
    net = graph(**case)
    if sizes == "open":
        net.reshape({net.inputs[0]: [-1, _HEADS, -1, _WIDTH], net.inputs[1]: [-1, -1]})
    expected = truth(case.get("stored", False))
    runs = {
        "simulation": simulate(net, core),
        "ovlpt": ovlpt.compile_model(net, "CPU", EXACT, core=core),
    }
    off = {name: float(np.abs(np.array(run(arrays())[0]) - expected).max()) for name, run in runs.items()}
    assert max(off.values()) < 2e-5, off


@pytest.mark.parametrize("least", [_LEAST, -100.0])
def test_small_offsets_are_joined(least):
    found = [event for event in Transformed(graph(least=least)).trace if event.transformation == "LargeOffsets"]
    assert [event.reason.code for event in found] == ["large_offset"] * int(least == _LEAST)


def test_a_mask_alone_stays_as_it_is():
    """It is added to scores, which are no constants."""
    query, mask = parameter([1, _LENGTH, _LENGTH]), parameter([1, _LENGTH], name="mask")
    scores = opset1.matmul(quantized(query, -4, 4), quantized(query, -4, 4), False, True)
    net = Model([opset1.result(opset1.add(scores, _masking("", mask, _LEAST)))], [query, mask], "mask")
    assert not [event for event in Transformed(net).trace if event.transformation == "LargeOffsets"]


def test_no_layer_is_added(core):
    stock = core.compile_model(graph(), "CPU", EXACT)
    mine = ovlpt.compile_model(graph(), "CPU", EXACT, core=core)
    count, most = (len(ovlpt.execution_types(each).executed) for each in (mine, stock))
    assert count <= most


def test_native_only_rounds_them_away():
    events = Transformed(graph(), Params(native_only=True)).trace
    assert not [event for event in events if event.transformation == "LargeOffsets"]


def test_in_a_model_that_passes_unchanged(core):
    """Its weights are integers, and its data floats."""
    mask = parameter([1, _LENGTH], name="mask")
    weights = opset1.multiply(opset1.convert(const(np.ones((_LENGTH, _LENGTH)), "i8"), "f32"), f32(0.1))
    bias = np.linspace(-2, 8, _LENGTH, dtype=np.float32)
    total = opset1.add(_masking("", mask, _LEAST), f32(bias))
    layer = opset1.matmul(total, weights, False, False)
    net = Model([opset1.result(total), opset1.result(layer)], [mask], "compressed")
    with pytest.warns(UserWarning, match="passes unchanged"):
        compiled = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    found = np.array(compiled([np.ones((1, _LENGTH), np.float32)])[0])
    np.testing.assert_array_equal(found, [bias])
