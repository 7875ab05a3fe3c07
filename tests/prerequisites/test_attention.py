"""ScaledDotProductAttention: as products and a Softmax where the plugin has it so, and whole where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ovlpt.plugin_config import cpu

import ovlpt
from ovlpt import plugin_config
from ovlpt.canonicalize.boolean_masks import BooleanMasks
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import RELEASE, Manager, Model, PartialShape, opset1
from tests.conftest import EXACT, TRUTH
from tests.graphs import NodeFactory, f32, fake_quantize, i64, model, opset3, opset6, opset8, parameter, run
from tests.prerequisites.test_quantize_dequantize import decibels

HEADS, SIZE, TOKENS, KEYS = 2, 16, 5, 7
WIDTH = HEADS * SIZE


def attention(*inputs, causal: bool = False):
    return NodeFactory("opset13").create(
        "ScaledDotProductAttention", [each.output(0) for each in inputs], {"causal": causal}
    )


def triple(queries=TOKENS, keys=KEYS, size=SIZE) -> list:
    return [
        parameter((1, HEADS, count, size), name)
        for count, name in ((queries, "query"), (keys, "rows"), (keys, "values"))
    ]


def mask_of(kind: str, shape):
    return parameter(shape, "seen", np.bool_) if kind == "boolean" else parameter(shape, "shift")


GRAPHS = {
    "boolean": lambda: attention(*triple(), mask_of("boolean", (1, 1, TOKENS, KEYS))),
    "boolean, of two axes": lambda: attention(*triple(), mask_of("boolean", (TOKENS, KEYS))),
    "boolean, of keys": lambda: attention(*triple(), mask_of("boolean", (1, 1, 1, KEYS))),
    "boolean, open": lambda: attention(*triple(-1, -1), mask_of("boolean", (1, 1, -1, -1))),
    "boolean and a scale": lambda: attention(*triple(), mask_of("boolean", (TOKENS, KEYS)), f32(0.3)),
    "causal": lambda: attention(*triple(), causal=True),
    "causal, square": lambda: attention(*triple(TOKENS, TOKENS), causal=True),
    "causal, open": lambda: attention(*triple(-1, -1), causal=True),
    "causal, more queries": lambda: attention(*triple(KEYS, TOKENS), causal=True),
    "a scale that is data": lambda: attention(*triple(), mask_of("float", (TOKENS, KEYS)), parameter((), "scale")),
    "a dynamic size of the heads": lambda: attention(*triple(size=-1)),
    "boolean, rank 3": lambda: attention(
        *(parameter((HEADS, count, SIZE), name) for count, name in ((TOKENS, "query"), (KEYS, "rows"), (KEYS, "values"))),
        mask_of("boolean", (TOKENS, KEYS)),
    ),
}  # fmt: skip
SIZES = {"query": TOKENS, "rows": KEYS, "values": KEYS}


def inputs_of(graph: Model) -> list[np.ndarray]:
    rng, inputs = np.random.default_rng(0), []
    for parameter_ in graph.get_parameters():
        name = parameter_.get_friendly_name()
        fallback = [1, HEADS, SIZES.get(name, TOKENS), SIZE] if name in SIZES else [1, 1, TOKENS, KEYS]
        shape = [
            fallback[axis] if size.is_dynamic else size.get_length()
            for axis, size in enumerate(parameter_.get_output_partial_shape(0))
        ]
        if name == "seen":
            seen = rng.uniform(size=shape) < 0.6
            seen[..., 0] = True
            inputs.append(seen)
        else:
            inputs.append(rng.standard_normal(shape).astype(np.float32))
    return inputs


def skip_on_2024(name: str) -> None:
    if RELEASE < (2025, 0) and name in ("a scale that is data", "a dynamic size of the heads"):
        pytest.skip("2024.6 scales the query, and is left to do so")


@pytest.mark.parametrize("name", GRAPHS)
def test_decomposed(name, core):
    skip_on_2024(name)
    before = model(GRAPHS[name]())
    after = before.clone()
    CommonOptimizations().run_on_model(after)
    kinds = [node.get_type_name() for node in after.get_ops()]
    assert "ScaledDotProductAttention" not in kinds
    assert kinds.count("MatMul") == 2
    inputs = inputs_of(before)
    np.testing.assert_allclose(run(after, inputs)[0], simulate(before, core)(inputs)[0], atol=1e-5)


def test_the_positions_of_a_causal_mask_are_of_a_version_that_a_gpu_knows():
    """The plugin of a GPU does not compile the first version of Range."""
    graph = model(GRAPHS["causal, open"]())
    CommonOptimizations().run_on_model(graph)
    counted = [node for node in graph.get_ops() if node.get_type_name() == "Range"]
    assert [node.get_type_info().version_id for node in counted] == ["opset4"] * 2


def test_what_a_causal_mask_shows():
    """Every position sees itself and those before it, whatever lies after; checked against numpy."""
    graph = model(GRAPHS["causal, open"]())
    CommonOptimizations().run_on_model(graph)
    query, rows, values = inputs_of(graph)
    scores = query @ np.swapaxes(rows, -1, -2) / np.sqrt(SIZE)
    scores[..., np.triu(np.ones((TOKENS, KEYS), bool), 1)] = -np.inf
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = shares / shares.sum(-1, keepdims=True) @ values
    np.testing.assert_allclose(run(graph, [query, rows, values])[0], expected, atol=1e-5)


def signed(data, high: float):
    return fake_quantize(data, -high, high * 127 / 128)


def linear(data, seed: int):
    stored = np.random.default_rng(seed).uniform(-0.1, 0.1, (WIDTH, WIDTH))
    product = opset1.matmul(data, fake_quantize(f32(stored), -0.2, 0.2, 255), False, True)
    return opset1.add(product, f32(np.linspace(-0.3, 0.3, WIDTH)))


def of_heads(data, seed: int, tokens: int):
    split = opset1.reshape(linear(data, seed), i64(1, tokens, HEADS, SIZE), False)
    return opset1.transpose(split, i64(0, 2, 1, 3))


def quantized(kind: str = "plain", cached: bool = False, tokens: int = 64) -> Model:
    """Attention over quantized queries and keys; ``cached``: with the keys and values of the steps before."""
    x = parameter((1, tokens, WIDTH))
    data = signed(x, 4.0)
    queries, keys = (signed(of_heads(data, seed, tokens), 2.0) for seed in (1, 2))
    values, parameters, sinks = of_heads(data, 3, tokens), [x], []
    if cached:
        parameters.append(parameter((-1,), "beams", np.int32))
        empty = opset3.broadcast(f32(0.0), i64(1, HEADS, 0, SIZE))

        def with_past(value, name: str):
            past = opset6.read_value(empty, name, np.float32, PartialShape([1, HEADS, -1, SIZE]))
            joined = opset1.concat([opset8.gather(past, parameters[1], i64(0)), value], 2)
            sinks.append(opset6.assign(joined, name))
            return joined

        keys, values = with_past(keys, "keys"), with_past(values, "values")
    inputs = [queries, keys, values]
    if kind == "boolean":
        parameters.append(parameter((1, 1, tokens, tokens), "seen", np.bool_))
        inputs.append(parameters[-1])
    elif kind == "scale":
        parameters += [parameter((1, 1, tokens, tokens), "shift"), parameter((), "scale")]
        inputs += parameters[-2:]
    read = opset1.transpose(attention(*inputs, causal=kind == "causal"), i64(0, 2, 1, 3))
    joined = signed(opset1.reshape(read, i64(1, tokens, WIDTH), False), 1.0)
    return Model([opset1.result(linear(joined, 4))], sinks, parameters, kind)


def with_products(core) -> ovlpt.PluginConfig:
    """The settings of this CPU, with each MatMul as one: as a convolution, where that is faster, it has more layers."""
    own = plugin_config.for_device(core, "CPU")
    return replace(own, params=replace(own.params, mat_mul_as_convolution=False))


@pytest.mark.parametrize("kind", ["plain", "boolean", "causal", "scale"])
def test_executed_as_stock_has_it(kind, core):
    skip_on_2024(kind)
    graph = quantized(kind)
    inputs = inputs_of(graph)
    stock = core.compile_model(graph, "CPU", EXACT)
    mine = ovlpt.compile_model(graph, "CPU", EXACT, core=core, plugin=with_products(core))
    layers = [ovlpt.execution_types(each, inputs).executed for each in (stock, mine)]
    assert len(layers[1]) <= len(layers[0])
    # before 2025.3 stock has a layer of its own for the mask
    low = [sum(layer.is_int8 and "Select" not in layer.name for layer in each) for each in layers]
    assert low[1] >= low[0]
    simulation = simulate(graph, core)
    expected, theirs, ours = (np.array(each(inputs)[0]) for each in (simulation, stock, mine))
    assert decibels(expected, ours) >= min(decibels(expected, theirs) - 1, 60)
    said = [answer.reason for answer in ovlpt.explain(graph, core=core) if "ScaledDot" in answer.operation]
    assert RELEASE < (2025, 0) or not said
    assert not any("plugins run it in float" in reason.text for reason in said)


@pytest.mark.parametrize("kind", ["plain", "causal"])
def test_attention_with_a_cache_stays_whole(kind, core):
    """The plugin fuses it with its variables; decomposed, nothing would."""
    graph = quantized(kind, cached=True, tokens=4)
    inputs = [np.random.default_rng(0).standard_normal((1, 4, WIDTH)).astype(np.float32), np.zeros(1, np.int32)]
    stock = core.compile_model(graph, "CPU", EXACT)
    mine = ovlpt.compile_model(graph, "CPU", EXACT, core=core, plugin=with_products(core))
    kinds = [[layer.layer_type for layer in ovlpt.execution_types(each).executed] for each in (stock, mine)]
    assert kinds[0].count("ScaledDotProductAttention") == kinds[1].count("ScaledDotProductAttention") == 1
    assert len(kinds[1]) <= len(kinds[0])
    simulation = core.compile_model(graph, "CPU", TRUTH)
    requests = [each.create_infer_request() for each in (simulation, stock, mine)]
    for _ in range(3):  # the cache grows
        expected, theirs, ours = (np.array(request.infer(inputs)[0]) for request in requests)
        assert decibels(expected, ours) >= min(decibels(expected, theirs) - 1, 60)


def with_a_cache(mask: str, rank: int = 4) -> Model:
    """Attention over keys and values of all steps so far."""
    shape = (-1, HEADS, -1, SIZE) if rank == 4 else (-1, -1, SIZE)
    query, key, value = (parameter(shape, name) for name in ("query", "rows", "values"))
    beams, sinks = parameter((-1,), "beams", np.int32), []

    def with_past(new, name: str):
        sizes = i64(2, HEADS, 0, SIZE) if rank == 4 else i64(2, 0, SIZE)
        past = opset6.read_value(opset3.broadcast(f32(0.0), sizes), name, np.float32, PartialShape(list(shape)))
        joined = opset1.concat([opset8.gather(past, beams, i64(0)), new], rank - 2)
        sinks.append(opset6.assign(joined, name))
        return joined

    inputs = [query, with_past(key, "keys"), with_past(value, "values")]
    inputs += {
        "none": [],
        "a number": [f32(0.0)],
        "a number, and a scale": [f32(0.5), f32(0.5)],
        "[1, 1]": [f32([[0.0]])],
        "[1, 1, 1, 1]": [f32([[[[0.0]]]])],
        "a number that is data": [parameter((), "shift")],
        "boolean": [parameter((-1, 1, -1, -1), "seen", np.bool_)],
    }[mask]
    given = [each for each in inputs if each.get_friendly_name() in ("seen", "shift")]
    parameters = [query, key, value, beams, *given]
    return Model([opset1.result(attention(*inputs))], sinks, parameters, "cached")


@pytest.mark.parametrize(
    ("mask", "rank", "whole"),
    [
        ("none", 4, True),
        ("a number", 4, True),
        ("a number, and a scale", 4, True),
        ("[1, 1]", 4, True),
        ("[1, 1, 1, 1]", 4, True),
        ("a number that is data", 4, False),
        ("none", 3, False),
    ],
)
def test_a_mask_of_one_number(mask, rank, whole, core):
    """The plugin's kernel for attention with a cache reads such a mask past its end, and takes rank 4 only."""
    graph = with_a_cache(mask, rank)
    CommonOptimizations(cpu.KERNELS).run_on_model(graph)
    compiled = core.compile_model(graph, "CPU", {**EXACT, "KV_CACHE_PRECISION": "f32"})
    kinds = [layer.layer_type for layer in ovlpt.execution_types(compiled).executed]
    assert ("ScaledDotProductAttention" in kinds) == whole
    request, rng, past = compiled.create_infer_request(), np.random.default_rng(0), None
    scale = 0.5 if "scale" in mask else SIZE**-0.5
    for tokens in (5, 1, 1):
        shape = (2, HEADS, tokens, SIZE)[-rank:] if rank == 4 else (2, tokens, SIZE)
        query, *new = rng.standard_normal((3, *shape)).astype(np.float32)
        past = new if past is None else [np.concatenate(pair, -2) for pair in zip(past, new, strict=True)]
        scores = query @ past[0].swapaxes(-1, -2) * scale
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        expected = shares / shares.sum(-1, keepdims=True) @ past[1]
        inputs = [query, *new, np.arange(2, dtype=np.int32)]
        inputs += [np.float32(0)] if "data" in mask else []
        np.testing.assert_allclose(request.infer(inputs)[0], expected, atol=1e-5)


def test_a_boolean_mask_of_an_attention_with_a_cache(core):
    """The plugin's kernel reads it rightly; before 2025 compiling threw."""
    graph, manager = with_a_cache("boolean"), Manager()
    manager.register_pass(BooleanMasks())
    manager.register_pass(CommonOptimizations(cpu.KERNELS))
    manager.run_passes(graph)
    compiled = core.compile_model(graph, "CPU", {**EXACT, "KV_CACHE_PRECISION": "f32"})
    assert "ScaledDotProductAttention" in [layer.layer_type for layer in ovlpt.execution_types(compiled).executed]
    query, *new = np.random.default_rng(0).standard_normal((3, 2, HEADS, TOKENS, SIZE)).astype(np.float32)
    seen = np.random.default_rng(1).uniform(size=(2, 1, TOKENS, TOKENS)) < 0.5
    seen[..., 0] = True
    scores = np.where(seen, query @ new[0].swapaxes(-1, -2) / np.sqrt(SIZE), -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = shares / shares.sum(-1, keepdims=True) @ new[1]
    np.testing.assert_allclose(compiled([query, *new, np.arange(2, dtype=np.int32), seen])[0], expected, atol=1e-5)


def test_products_with_a_cache_stay_products(core):
    """Joined to an attention, as OpenVINO's own transformations do, the plugin would keep the cache in 8 bits."""
    x, beams = parameter((-1, -1, WIDTH)), parameter((-1,), "beams", np.int32)
    data, sinks = signed(x, 4.0), []

    def with_past(seed: int):
        empty = opset3.broadcast(f32(0.0), i64(1, HEADS, 0, SIZE))
        past = opset6.read_value(empty, str(seed), np.float32, PartialShape([-1, HEADS, -1, SIZE]))
        new = opset1.transpose(opset1.reshape(linear(data, seed), i64(0, 0, HEADS, SIZE), True), i64(0, 2, 1, 3))
        joined = opset1.concat([opset8.gather(past, beams, i64(0)), new], 2)
        sinks.append(opset6.assign(joined, str(seed)))
        return joined

    query = opset1.transpose(opset1.reshape(linear(data, 1), i64(0, 0, HEADS, SIZE), True), i64(0, 2, 1, 3))
    scores = opset1.multiply(opset1.matmul(query, with_past(2), False, True), f32(SIZE**-0.5))
    read = opset1.transpose(opset1.matmul(opset8.softmax(scores, -1), with_past(3), False, False), i64(0, 2, 1, 3))
    result = linear(signed(opset1.reshape(read, i64(0, 0, WIDTH), True), 1.0), 4)
    graph = Model([opset1.result(result)], sinks, [x, beams], "products")
    simulation, stock, mine = (
        core.compile_model(graph, "CPU", TRUTH),
        core.compile_model(graph, "CPU", EXACT),
        ovlpt.compile_model(graph, "CPU", EXACT, plugin=cpu.config(), core=core),
    )
    layers = [ovlpt.execution_types(each).executed for each in (stock, mine)]
    assert len(layers[1]) <= len(layers[0])
    requests = [each.create_infer_request() for each in (simulation, stock, mine)]
    for step in range(3):
        inputs = [np.random.default_rng(step).standard_normal((1, 2, WIDTH)).astype(np.float32), np.zeros(1, np.int32)]
        expected, theirs, ours = (np.array(request.infer(inputs)[0]) for request in requests)
        assert decibels(expected, ours) >= min(decibels(expected, theirs) - 1, 60)
