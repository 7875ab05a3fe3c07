"""Language models with a cache of keys and values in their states."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from ovlpt.plugin_config import cpu

import ovlpt
from ovlpt.inspect.advice import QuantizeInput
from ovlpt.inspect.calibration import calibrate
from ovlpt.inspect.inputs import sequence
from ovlpt.openvino_api import RELEASE, opset1
from tests.conftest import EXACT, TRUTH
from tests.prerequisites.test_quantize_dequantize import decibels
from tools.zoo.decoders import GPT2, LLAMA, decoder, quantize_cache, steps

SMALL = {"layers": 1, "width": 32, "heads": 4, "vocabulary": 50, "positions": 64}
SHAPES = {"gpt2": replace(GPT2, **{**SMALL, "key_heads": 4}), "llama": replace(LLAMA, **{**SMALL, "key_heads": 2})}


def network(name: str, cache: bool = False):
    model = decoder(SHAPES[name], quantized=True)
    if cache:
        quantize_cache(model)
    return model


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_prefill_and_tokens(name, cache, core):
    """No layer is lost, the cache is of the same type, and the numbers are those of the simulation, over a sequence."""
    graph = network(name, cache)
    exact = {**EXACT, "KV_CACHE_PRECISION": "f32"}
    compiled = [
        core.compile_model(graph, "CPU", TRUTH),
        core.compile_model(graph, "CPU", exact),
        ovlpt.compile_model(graph, "CPU", exact, core=core),
    ]
    counts = [
        sum(each.is_int8 for each in ovlpt.execution_types(one).executed if each.layer_type in WEIGHTED)
        for one in compiled[1:]
    ]
    assert counts[1] >= counts[0] > 0
    requests, found = [each.create_infer_request() for each in compiled], [[], [], []]
    for step in steps(SHAPES[name], [6, 1, 1, 1], batch=2):
        step["beam_idx"] = step["beam_idx"][::-1].copy()  # each goes on from the other's past
        for request, outputs in zip(requests, found, strict=True):
            outputs.append(np.array(request.infer(step)[0]).ravel())
    expected, theirs, ours = map(np.concatenate, found)
    assert decibels(expected, ours) >= min(decibels(expected, theirs) - 1, 40)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_quantized_cache_is_stored_in_integers(name, precision, core):
    """Its attention stays one layer, so that there are no more layers than stock has, but for Converts in 2024.6."""
    if precision == "bf16" and RELEASE < (2025, 0) and "ONEDNN_MAX_CPU_ISA" in os.environ:
        pytest.skip("this OpenVINO knows of no limit, and asks oneDNN for kernels of bf16")
    graph = network(name, cache=True)
    in_products = partial(ovlpt.compile_model, plugin=cpu.config(), core=core)  # not convolutions, whatever the CPU
    both = [
        compiled(graph, "CPU", {**EXACT, "INFERENCE_PRECISION_HINT": precision})
        for compiled in (core.compile_model, in_products)
    ]
    requests = [each.create_infer_request() for each in both]
    for step in steps(SHAPES[name], [6, 1]):
        outputs = [np.array(request.infer(step)[0]).ravel() for request in requests]
        assert decibels(*outputs) > 20
    assert {state.state.element_type.get_type_name() for state in requests[1].query_state()} == {"i8"}
    theirs, ours = (ovlpt.execution_types(each).executed for each in both)
    if RELEASE >= (2025, 0):
        assert len(ours) <= len(theirs)
    products = [sum(layer.layer_type == "MatMul" for layer in layers) for layers in (theirs, ours)]
    assert products[1] <= products[0]  # some CPUs have no kernel of joined ones in bf16


@pytest.mark.parametrize("name", SHAPES)
def test_an_attention_of_quantized_keys_is_as_whole_as_stock_keeps_it(name, core):
    """2024.6 leaves it to one kernel, later releases take it apart."""
    graph = network(name)
    for attention in (node for node in graph.get_ops() if node.get_type_name() == "ScaledDotProductAttention"):
        for port in (0, 1):
            ends = [opset1.constant(np.float32(end)) for end in (-4.0, 3.96875)]
            quantized = opset1.fake_quantize(attention.input_value(port), *ends, *ends, 256)
            attention.input(port).replace_source_output(quantized.output(0))
    in_products = partial(ovlpt.compile_model, plugin=cpu.config(), core=core)  # not convolutions, whatever the CPU
    both = [compiled(graph, "CPU", EXACT) for compiled in (core.compile_model, in_products)]
    kinds = [[layer.layer_type for layer in ovlpt.execution_types(each).executed] for each in both]
    assert kinds[1].count("ScaledDotProductAttention") == kinds[0].count("ScaledDotProductAttention")
    assert len(kinds[1]) <= len(kinds[0])
    requests = [each.create_infer_request() for each in both]
    for step in steps(SHAPES[name], [6, 1, 1]):
        assert decibels(*[np.array(request.infer(step)[0]).ravel() for request in requests]) > 20


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_queries_that_are_quantized_before_their_heads_are_parted(precision, core):
    """As NNCF quantizes them. Attention reads the scale's result: no Convert of its own in between."""
    graph = network("gpt2")
    (attention,) = (node for node in graph.get_ops() if node.get_type_name() == "ScaledDotProductAttention")
    split = attention.input_value(0).get_node().input_value(0).get_node()
    assert split.get_type_name() == "Reshape"
    ends = [opset1.constant(np.float32(end)) for end in (-4.0, 3.96875)]
    split.input(0).replace_source_output(opset1.fake_quantize(split.input_value(0), *ends, *ends, 256).output(0))
    both = [
        compiled(graph, "CPU", {**EXACT, "INFERENCE_PRECISION_HINT": precision})
        for compiled in (core.compile_model, partial(ovlpt.compile_model, plugin=cpu.config(), core=core))
    ]
    kinds = [[layer.layer_type for layer in ovlpt.execution_types(each).executed] for each in both]
    assert kinds[1].count("Convert") <= kinds[0].count("Convert")
    requests = [each.create_infer_request() for each in both]
    for step in steps(SHAPES["gpt2"], [6, 1, 1]):
        assert decibels(*[np.array(request.infer(step)[0]).ravel() for request in requests]) > 20


WEIGHTED = ("Convolution", "FullyConnected", "MatMul")


def test_generated_steps_fit_the_model():
    first, second, third = sequence(network("gpt2"), 2, 5, [0, 1, 2])
    assert [array.shape for array in first] == [(2, 5), (2, 5), (2, 5), (2,)]
    assert [array.shape for array in third] == [(2, 1), (2, 7), (2, 1), (2,)]
    assert third[2].tolist() == [[6], [6]]
    assert second[3].tolist() == [0, 1]
    assert second[1].all()


def test_check_compares_its_numbers(core):
    found = ovlpt.check(network("gpt2"), against="stock", core=core)
    assert found.ok
    assert not any("does not run" in note for note in found.notes)
    assert {record.inputs for record in found.numbers.records} >= {"[1,64] [1,64] [1,64] [1]", "[2,1] [2,1] [2,1] [2]"}


def test_inferences_begin_anew(core):
    """Tools infer the same inputs again and again: the cache is empty each time."""
    compiled = core.compile_model(network("gpt2"), "CPU", {**EXACT, "PERF_COUNT": True})
    inputs = sequence(network("gpt2"), 1, 5, [0])[0]
    assert any(layer.real_time > 0 for layer in ovlpt.execution_types(compiled, inputs).executed)


def test_ranges_of_a_network_with_variables(core):
    graph = decoder(SHAPES["gpt2"])
    (layer,) = (node for node in graph.get_ops() if node.get_friendly_name() == "layers.0.mlp.out")
    source = layer.input_value(0).get_node()
    advice = QuantizeInput("MatMul", "layers.0.mlp.out", 0, f"{source.get_type_name()} {source.get_friendly_name()}")
    samples = [sequence(graph, 1, 5, [number])[0] for number in range(2)]
    ((low, high),) = calibrate(graph, [advice], samples, core).values()
    assert -0.2 < low < 0 < high


@pytest.mark.parametrize("function", [ovlpt.compare, ovlpt.verify])
def test_layers_of_a_network_with_variables_have_no_numbers_of_their_own(function, core):
    graph = network("gpt2")
    with pytest.raises(ovlpt.InputError, match=r'the model "gpt2" has variables, and .* "ovlpt check" compares'):
        function(graph, sequence(graph, 1, 5, [0])[0], core=core)


def test_explain_bench_and_report_take_it(core):
    graph = network("gpt2")
    answers = ovlpt.explain(graph, core=core)
    assert answers.headline == "7 of 7 layers with weights run in int8"
    sides = ovlpt.bench(graph, iterations=1, memory=False, core=core).sides
    assert len(sides) == 2
    assert all(side.latencies for side in sides)
    found = ovlpt.report(graph, seconds=0.2, core=core)
    assert sum(layer.type in WEIGHTED for layer in found.executed) >= 7
    assert found.latency > 0
