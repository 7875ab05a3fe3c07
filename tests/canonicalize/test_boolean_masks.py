"""What a boolean mask shows takes part in an attention, on each release; the truth is numpy's."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.graph.attention import MISREADS_BOOLEANS
from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.interpreter.evaluation import evaluate
from ovlpt.openvino_api import NodeFactory, opset1, opset8
from tests.conftest import EXACT, Transformed
from tests.lowered import ways
from tests.networks import int8_weights, model, parameter, quantized
from tools.fuzz.graphs import Form

HEADS, ROWS, KEYS, SIZE = 2, 5, 7, 8


def attention(query, key, mask, causal: bool = False):
    inputs = [each.output(0) for each in (query, key, key, mask)]
    return NodeFactory("opset13").create("ScaledDotProductAttention", inputs, {"causal": causal})


def shown() -> np.ndarray:
    mask = np.random.default_rng(1).uniform(size=(ROWS, KEYS)) < 0.5
    mask[:, 0] = True
    return mask


def graph(mask: str, products: str = "int8", causal: bool = False, sizes: str = "known"):
    """``products``: the types of the attention's; a layer before it runs in int8."""
    tensors = [parameter((1, HEADS, size, SIZE) if sizes == "known" else (-1, HEADS, -1, SIZE), name=name)
               for size, name in ((ROWS, "query"), (KEYS, "key"))]  # fmt: skip
    query, key = (quantized(each, -4, 4) if products == "int8" else each for each in tensors)
    if mask == "constant":
        seen = opset1.constant(shown())
    else:
        tensors.append(parameter((ROWS, KEYS) if sizes == "known" else (-1, -1), "boolean", "seen"))
        seen = tensors[-1]
    weights = int8_weights([SIZE, SIZE])
    layer = opset1.matmul(quantized(tensors[0], -4, 4), weights, False, True)
    return model([attention(query, key, seen, causal), layer], tensors)


def inputs_of(net, mask: np.ndarray) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    data = [rng.uniform(-1, 1, (1, HEADS, size, SIZE)).astype(np.float32) for size in (ROWS, KEYS)]
    return [*data, mask][: len(net.inputs)]


def truth(query, key, mask: np.ndarray, products: str = "float") -> np.ndarray:
    if products == "int8":
        query, key = (np.rint((each + 4) / (8 / 255)) * (8 / 255) - 4 for each in (query, key))
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(SIZE)
    scores = np.where(mask, scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ key


@pytest.mark.parametrize("sizes", ["known", "open"])
@pytest.mark.parametrize("products", ["int8", "float"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["constant", "variable"])
def test_what_a_mask_shows(core, mask, causal, products, sizes):
    net = graph(mask, products, causal, sizes)
    inputs = inputs_of(net, shown())
    expected = truth(*inputs[:2], np.tri(ROWS, KEYS, dtype=bool) if causal else shown(), products)
    for name, run in ways(net, core).items():
        assert np.abs(np.array(run(inputs)[0]) - expected).max() < 1e-4, name


@pytest.mark.parametrize("mask", ["constant", "variable"])
def test_in_f16(core, mask):
    net = Form("f16").apply(graph(mask))
    inputs = [each.astype(np.float16) if each.dtype == np.float32 else each for each in inputs_of(net, shown())]
    expected = truth(*(each.astype(np.float32) for each in inputs[:2]), shown(), "int8")
    for name, run in ways(net, core).items():
        assert np.abs(np.array(run(inputs)[0]) - expected).max() < 2e-3, name


def test_a_row_that_is_hidden_whole(core):
    """It has no numbers, by the operation's definition and on later releases."""
    net, mask = graph("variable", "float"), shown()
    mask[2] = False
    inputs = inputs_of(net, mask)
    with np.errstate(invalid="ignore"):
        expected = truth(*inputs[:2], mask)
    for name, run in ways(net, core).items():
        np.testing.assert_allclose(np.array(run(inputs)[0]), expected, atol=1e-4, err_msg=name)


def test_in_branches(core):
    x, which = parameter([1, HEADS, ROWS, SIZE]), parameter([], "boolean", "which")
    masks = (np.tri(ROWS, dtype=bool), np.tri(ROWS, k=-1, dtype=bool) | np.eye(ROWS, k=2, dtype=bool))
    bodies = []
    for mask in masks:
        data = parameter([1, HEADS, ROWS, SIZE])
        bodies.append(model(attention(data, data, opset1.constant(mask)), data))
    node = opset8.if_op(which)
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    node.set_input(quantized(x, -4, 4).output(0), *(body.get_parameters()[0] for body in bodies))
    chosen = node.set_output(*(body.get_results()[0] for body in bodies))
    net = model([opset1.relu(chosen)], [x, which])
    data = inputs_of(net, masks[0])[0]
    for name, run in ways(net, core).items():
        expected = np.maximum(truth(data, data, masks[0], "int8"), 0)
        assert np.abs(np.array(run([data, np.array(True)])[0]) - expected).max() < 1e-4, name


@pytest.mark.parametrize("products", ["int8", "float"])
def test_the_check_passes(core, products):
    assert ovlpt.check(graph("constant", products), core=core, precision="f32").ok


@pytest.mark.parametrize("mask", ["constant", "variable"])
def test_native_only_reads_it_as_the_plugin_does(core, mask):
    net = graph(mask)
    inputs = inputs_of(net, shown())
    stock = core.compile_model(net, "CPU", EXACT)
    mine = ovlpt.compile_model(net, "CPU", EXACT, native_only=True, core=core)
    expected, found = (np.array(run(inputs)[0]) for run in (stock, mine))
    assert np.abs(found - expected).max() < 1e-4
    assert np.abs(expected - truth(*inputs[:2], shown() != MISREADS_BOOLEANS, "int8")).max() < 1e-4


def test_in_the_float_network(core):
    net = graph("constant")
    inputs = inputs_of(net, shown())
    found = core.compile_model(without_fake_quantize(net), "CPU", EXACT)(inputs)[0]
    assert np.abs(found - truth(*inputs, shown())).max() < 1e-4


def test_in_a_model_that_passes_unchanged(core):
    """Its weights are integers, and its data floats."""
    tensors = [parameter((1, HEADS, size, SIZE), name=name) for size, name in ((ROWS, "query"), (KEYS, "key"))]
    layer = opset1.matmul(tensors[0], int8_weights([SIZE, SIZE]), False, True)
    net = model([attention(*tensors, opset1.constant(shown())), layer], tensors)
    inputs = inputs_of(net, shown())
    with pytest.warns(UserWarning, match="passes unchanged"):
        found = ovlpt.compile_model(net, "CPU", EXACT, core=core)(inputs)[0]
    assert np.abs(found - truth(*inputs, shown())).max() < 1e-4


def test_alone():
    net = graph("variable", "float")
    inputs = inputs_of(net, shown())
    node = next(each for each in net.get_ops() if each.get_type_name() == "ScaledDotProductAttention")
    (found,) = evaluate(node, [inputs[0], inputs[1], inputs[1], inputs[2]])
    assert np.abs(found - truth(*inputs[:2], shown())).max() < 1e-4


@pytest.mark.parametrize("causal", [False, True])
def test_only_releases_that_misread_it_need_floats(causal):
    events = [
        event for event in Transformed(graph("constant", causal=causal)).trace if event.transformation == "BooleanMasks"
    ]
    assert [event.reason.code for event in events] == ["boolean_mask"] * int(MISREADS_BOOLEANS and not causal)
