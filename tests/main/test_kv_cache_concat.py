"""A cache of keys and values in f8, against the native passes and the float model's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Trace
from ovlpt.main.kv_cache_concat import Float8Cache
from ovlpt.openvino_api import RELEASE, Core, Manager, Model, NodeFactory, PartialShape, opset1, opset6, opset8, opset13
from ovlpt.trace import Outcome
from tests.graphs import f32, i64, parameter
from tools.parity.compare import compare
from tools.parity.driver import NoCompiler, float8_cache_native

HEADS, SIZE = 4, 8


def attention(
    kind: str = "f8e4m3",
    scale: float = 2.0,
    shift: float | None = 0.5,
    shared: int = 1,
    results: bool = True,
    stateful: bool = True,
    shift_of_values: float | None = None,
) -> Model:
    """An attention over cached keys and values, rounded to ``kind``; ``shared``: queries for each of their heads."""
    query = parameter((-1, HEADS, -1, SIZE), "query")
    beams, parameters, sinks, outputs = parameter((-1,), "beams", np.int32), [query], [], []

    def cached(name: str, shift):
        shape = (-1, HEADS // shared, -1, SIZE)
        new = parameter(shape, name)
        start = parameter(shape, f"past {name}")
        if stateful:
            past = opset8.gather(opset6.read_value(start, name, np.float32, PartialShape(list(shape))), beams, i64(0))
        else:
            past = start
        parameters.extend([new, start])
        joined = opset1.concat([past, new], 2)
        if stateful:
            sinks.append(opset6.assign(joined, name))
        elif results:
            outputs.append(joined)
        inputs = [joined, f32(scale), *([] if shift is None else [f32(shift)])]
        rounded = opset13.fake_convert(*inputs, destination_type=kind)
        if shared == 1:
            return rounded
        each = opset1.unsqueeze(rounded, i64(2))
        spread = NodeFactory("opset3").create(
            "Broadcast", [each.output(0), i64(1, 1, shared, 1, 1).output(0)], {"mode": "bidirectional"}
        )
        return opset1.reshape(spread, i64(0, HEADS, -1, SIZE), True)

    key, value = cached("key", shift), cached("value", shift if shift_of_values is None else shift_of_values)
    outputs = [opset13.scaled_dot_product_attention(query, key, value), *outputs]
    parameters += [beams] if stateful else []
    return Model([opset1.result(each) for each in outputs], sinks, parameters, "cache")


def in_float8(model: Model, trace: Trace | None = None) -> Model:
    result, manager = model.clone(), Manager()
    manager.register_pass(Float8Cache(trace=trace))
    manager.run_passes(result)
    return result


CASES = {
    "f8e4m3": {},
    "f8e5m2": {"kind": "f8e5m2"},
    "without a shift": {"shift": None},
    "a scale that is no power of two": {"scale": 0.37, "shift": None},
    "shared heads": {"shared": 2},
    "without a state": {"stateful": False},
    "without a state, only the attention": {"stateful": False, "results": False},
}


@pytest.mark.parametrize("case", CASES)
def test_as_the_native_passes(case):
    if RELEASE < (2026, 0):
        pytest.skip("this library has no such passes")
    model = attention(**CASES[case])
    try:
        native = float8_cache_native(model)
    except NoCompiler as error:
        pytest.skip(str(error))
    found = compare(native, in_float8(model))
    assert found.equal, found.differences


@pytest.mark.parametrize("case", ["f8e4m3", "f8e5m2", "without a shift", "shared heads"])
def test_the_state_holds_f8(case):
    settings = CASES[case]
    result = in_float8(attention(**settings))
    kind = settings.get("kind", "f8e4m3")
    reads = [node for node in result.get_ops() if node.get_type_name() == "ReadValue"]
    assert [node.get_output_element_type(0).to_string() for node in reads] == [kind, kind]
    assert all(sink.get_input_element_type(0).to_string() == kind for sink in result.get_sinks())


@pytest.mark.parametrize("case", ["f8e4m3", "without a shift", "shared heads"])
def test_the_numbers_stay(case):
    """Over steps, on a plugin that computes each operation as such."""
    if RELEASE < (2025, 0):
        pytest.skip("the CPU plugin of 2024.6 cannot concatenate f8")
    graph = attention(**CASES[case])
    core, rng = Core(), np.random.default_rng(0)
    requests = [
        core.compile_model(each, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
        for each in (graph, in_float8(graph))
    ]
    heads = HEADS // CASES[case].get("shared", 1)
    for tokens in (3, 1, 1):
        arrays = [rng.standard_normal((2, HEADS, tokens, SIZE)).astype(np.float32)]
        for _ in range(2):
            arrays.append(rng.standard_normal((2, heads, tokens, SIZE)).astype(np.float32))
            arrays.append(np.zeros((2, heads, 0, SIZE), np.float32))
        arrays.append(np.array([1, 0] if tokens == 1 else [0, 1], np.int32))
        expected, found = (np.array(request.infer(arrays)[0]) for request in requests)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_different_scales_of_keys_and_values_are_no_matter():
    result = in_float8(attention(shift_of_values=0.25))
    assert all(sink.get_input_element_type(0).to_string() == "f8e4m3" for sink in result.get_sinks())


def test_a_cache_that_others_read_stays():
    graph, trace = attention(), Trace()
    concats = [node for node in graph.get_ops() if node.get_type_name() == "Concat"]
    graph.add_results([opset1.result(opset1.relu(concat.output(0))) for concat in concats])
    result = in_float8(graph, trace)
    assert all(sink.get_input_element_type(0).to_string() == "f32" for sink in result.get_sinks())
    rejected = [event.reason.code for event in trace if event.outcome == Outcome.REJECTED]
    assert rejected[0] == "several_consumers"


def test_nothing_to_do():
    x = parameter((1, 3))
    result = in_float8(Model([opset1.result(opset1.relu(x))], [x], "plain"))
    assert [node.get_type_name() for node in result.get_ordered_ops()] == ["Parameter", "Relu", "Result"]
