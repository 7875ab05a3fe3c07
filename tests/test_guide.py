"""What OpenVINO's guide says of low precision transformations as a whole: steps, passes, callbacks, what they leave."""

from __future__ import annotations

import importlib.util
from itertools import groupby

import numpy as np
import pytest

import ovlpt
from ovlpt.attributes import AttributeTable, PrecisionPreserved, Precisions
from ovlpt.cleanup.fold_fake_quantize import FoldFakeQuantizeTransformation
from ovlpt.cleanup.multiply_to_group_convolution import MultiplyToGroupConvolutionTransformation
from ovlpt.graph.text import to_text
from ovlpt.low_precision import CLEANUP, MAIN, MARKUP, PREREQUISITES
from ovlpt.main.convolution_backprop_data import ConvolutionBackpropDataTransformation
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.openvino_api import Model, opset1
from ovlpt.predicates import (
    can_be_transformed_to_group_convolution,
    is_asymmetric_on_weights,
    is_asymmetric_quantization,
    is_dynamic_or_scalar,
)
from ovlpt.trace import Outcome
from tests.conftest import EXACT, Transformed, assert_close, inputs_of, run_pass
from tests.graphs import CASES, dequantization, f32, fake_quantize, i64, integers, model, parameter, run, weights
from tests.markup.marking import I8, U8, the
from tests.networks import residual
from tests.test_openvino_dev import QDQ, assert_int8_and_right
from tests.test_operations_on_graphs import operation, quantized, variants

STEPS = {"prerequisites": PREREQUISITES, "markup": MARKUP, "main": MAIN, "cleanup": CLEANUP}


def moved_weights(move: str) -> Model:
    """A MatMul with weights that are dequantized in another order or shape than they are read."""
    data = fake_quantize(parameter((2, 4)), 0.0, 2.55)
    stored = dequantization(integers([5, 4] if move == "Transpose" else [4, 5, 1]), 0.01, name="w")
    read = opset1.transpose(stored, i64(1, 0)) if move == "Transpose" else opset1.reshape(stored, i64(4, 5), False)
    return model(opset1.relu(opset1.matmul(data, read, False, False)))


@pytest.mark.parametrize("move", ["Transpose", "Reshape"])
def test_weights_are_moved_before_their_dequantization(move):
    result = Transformed(moved_weights(move))
    assert result.trace.of(the(result.before, move).get_friendly_name())
    assert move not in {node.get_type_name() for node in result.after.get_ops()}
    assert the(result.after, "MatMul").get_input_element_type(1).get_type_name() == "i8"
    result.assert_numbers()


def test_the_four_steps_in_their_order():
    """As callbacks see them: each pass asks its own, of the operations in their order, once a step."""
    seen: list[str] = []
    places: list[str] = []
    passes = ovlpt.PassConfig()

    def asked(step):
        def callback(node) -> bool:
            seen.append(step)
            if step == "main":
                places.append(node.get_friendly_name())
            return False

        return callback

    for step, kinds in STEPS.items():
        for kind in kinds:
            passes.set_callback(kind, asked(step))
    graph = moved_weights("Transpose")
    order = [node.get_friendly_name() for node in graph.get_ordered_ops()]
    run_pass(graph, ovlpt.LowPrecision([U8], pass_config=passes))
    assert [step for step, _ in groupby(seen)] == list(STEPS)
    first = [name for name in dict.fromkeys(places) if name in order]
    assert first == sorted(first, key=order.index)
    assert len(first) >= 3


def test_markup_changes_attributes_only():
    graph, attributes = residual(), AttributeTable()
    before = to_text(graph)
    for kind in MARKUP:
        run_pass(graph, kind([I8], attributes=attributes) if kind is MarkupPrecisions else kind(attributes=attributes))
    assert to_text(graph) == before
    assert attributes.get(the(graph, "Convolution").input(0), Precisions).value == ("i8",)
    assert attributes.get(the(graph, "Relu"), PrecisionPreserved).value


OTHERS = (*PREREQUISITES, *MARKUP, *CLEANUP, MultiplyToGroupConvolutionTransformation, FoldFakeQuantizeTransformation)


@pytest.mark.parametrize("kind", OTHERS, ids=lambda each: each.__name__)
def test_each_pass_of_the_other_steps_is_registrable_alone(kind):
    graph = moved_weights("Transpose")
    inputs = inputs_of(graph)
    expected = run(graph, inputs)
    run_pass(graph, kind())
    assert_close(run(graph, inputs), expected)


def test_openvinos_manager_takes_it():
    """By each of the names that it has had; a release has one or both."""
    names = [name for name in ("openvino.passes", "openvino.runtime.passes") if found(name)]
    assert names
    for name in names:
        manager, graph = importlib.import_module(name).Manager(), moved_weights("Transpose")
        manager.register_pass(ovlpt.LowPrecision())
        manager.run_passes(graph)
        assert the(graph, "FakeQuantize").get_output_element_type(0).get_type_name() == "u8"


def found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def outcomes(kind: type, graph: Model, callback) -> list[Outcome]:
    passes, trace = ovlpt.PassConfig(), ovlpt.Trace()
    passes.set_callback(kind, callback)
    run_pass(graph, ovlpt.LowPrecision(pass_config=passes, trace=trace))
    return [event.outcome for event in trace if event.transformation == kind.__name__]


def rows_of(kind: type) -> set[str]:
    return {name.split(".")[1] for name in kind.type_names()}


@pytest.mark.parametrize("kind", MAIN, ids=lambda each: each.__name__)
def test_each_transformation_asks_its_callback(kind):
    """What it transforms without one stays with one that says so."""
    graphs = [quantized(case, variants(case)) for case in CASES if operation(case.name) in rows_of(kind)]
    handled = [graph for graph in graphs if Outcome.TRANSFORMED in outcomes(kind, graph.clone(), lambda node: False)]
    assert handled
    for graph in handled:
        found = outcomes(kind, graph, lambda node: True)
        assert Outcome.DISABLED in found
        assert Outcome.TRANSFORMED not in found


def deconvolution(low: float, high: float) -> Model:
    data = fake_quantize(parameter((1, 4, 6, 6)), low, high)
    return model(opset1.convolution_backprop_data(data, weights([4, 3, 1, 1], 0.01), [1, 1]))


@pytest.mark.parametrize("low, read", [(0.0, "u8"), (-1.0, "f32")])
def test_the_callback_against_asymmetric_deconvolutions(low, read):
    passes = ovlpt.PassConfig()
    passes.set_callback(
        ConvolutionBackpropDataTransformation,
        lambda node: is_asymmetric_quantization(node) or is_asymmetric_on_weights(node),
    )
    for settings, expected in ((None, "u8"), (passes, read)):
        graph = run_pass(deconvolution(low, 1.55), ovlpt.LowPrecision(pass_config=settings))
        assert the(graph, "FakeQuantize").get_output_element_type(0).get_type_name() == expected


@pytest.mark.parametrize("shape, becomes", [((1, 1, 1, 1), False), ((1, 4, 1, 1), True)])
def test_the_callback_against_scalar_multiplies(shape, becomes):
    passes = ovlpt.PassConfig()
    passes.set_callback(MultiplyToGroupConvolutionTransformation, is_dynamic_or_scalar)
    data = opset1.convert(parameter((1, 4, 6, 6), precision=np.uint8), "f32")
    graph = model(opset1.multiply(data, f32(np.full(shape, 0.5))))
    for settings, expected in ((passes, becomes), (None, True)):
        after = run_pass(graph.clone(), MultiplyToGroupConvolutionTransformation(pass_config=settings))
        assert ("GroupConvolution" in {node.get_type_name() for node in after.get_ops()}) is expected


@pytest.mark.parametrize("constant, marked", [(True, True), (False, False)])
def test_the_callback_that_marks_no_multiply_but_of_a_constant(constant, marked):
    """The restriction of Multiply is for those that may become a group convolution."""
    passes, attributes = ovlpt.PassConfig(), AttributeTable()
    passes.set_callback(
        MarkupPrecisions,
        lambda node: node.get_type_name() == "Multiply" and not can_be_transformed_to_group_convolution(node),
    )
    restriction = ovlpt.PrecisionsRestriction.create("Multiply", {0: ["u8"], 1: ["i8"]})
    data = fake_quantize(parameter((1, 4, 6, 6)), 0.0, 2.55)
    other = f32(np.full((1, 4, 1, 1), 0.5)) if constant else fake_quantize(parameter((1, 4, 6, 6), "z"), 0.0, 2.55)
    graph = model(opset1.multiply(data, other))
    run_pass(graph, MarkupPrecisions([restriction], pass_config=passes, attributes=attributes))
    assert (attributes.get(the(graph, "Multiply").input(0), Precisions) is not None) is marked


def test_a_dequantization_is_convert_subtract_and_multiply():
    """What is left after the main step: constants are the second inputs."""
    passes = ovlpt.PassConfig({kind.__name__ for kind in CLEANUP})
    graph = model(opset1.sigmoid(opset1.relu(fake_quantize(parameter((1, 4, 6, 6)), -1.0, 1.55))))
    run_pass(graph, ovlpt.LowPrecision(pass_config=passes))
    after = [node for node in graph.get_ordered_ops() if node.get_type_name() in ("Convert", "Subtract", "Multiply")]
    assert [node.get_type_name() for node in after] == ["Convert", "Subtract", "Multiply"]
    for node in after[1:]:
        second = node.input_value(1).get_node()
        stored = second if second.get_type_name() == "Constant" else second.input_value(0).get_node()
        assert stored.get_type_name() == "Constant"


@pytest.mark.parametrize("restriction, read", [(U8, "u8"), (I8, "i8")])
def test_a_stored_decomposition_is_made_anew(restriction, read):
    """Where the layer takes another type than the quantization gives."""
    stored = opset1.fake_quantize(parameter((1, 4, 6, 6)), f32(-1.28), f32(1.27), f32(0), f32(255), 256)
    pair = dequantization(opset1.convert(stored, "u8"), 0.01, 128.0, "pair")
    graph = model(opset1.convolution(pair, weights([3, 4, 1, 1], 0.01), [1, 1], [0, 0], [0, 0], [1, 1]))
    result = Transformed(graph, precision_restrictions=[restriction])
    assert the(result.after, "FakeQuantize").get_output_element_type(0).get_type_name() == read
    assert ("Subtract" in {node.get_type_name() for node in result.after.get_ops()}) is (read == "u8")
    result.assert_numbers()


def test_a_quantization_after_a_layer_runs_in_its_kernel(core):
    """FakeQuantize stays an operation of floats in the result, and the plugin makes it a part of the layer before."""
    graph = residual()
    for number, node in enumerate(each for each in graph.get_ordered_ops() if each.get_type_name() == "FakeQuantize"):
        node.set_friendly_name(f"quantize{number}")
    layers = ovlpt.execution_types(ovlpt.compile_model(graph, "CPU", {**EXACT, "PERF_COUNT": True}, core=core))
    rows = [row.split() for row in layers.table().splitlines()]
    status = {row[0]: row[1] for row in rows if row[0].removeprefix("quantize").isdigit()}
    assert status.pop("quantize0") == "EXECUTED"  # of the input
    assert status
    assert set(status.values()) == {"NOT_RUN"}
    convolutions = [layer for layer in layers.executed if layer.layer_type == "Convolution"]
    assert len(convolutions) == 3
    assert all(layer.is_int8 for layer in convolutions)
    assert convolutions[0].output_precision == "u8"


def test_an_onnx_file_with_pairs():
    """QuantizeLinear and DequantizeLinear, as read from the file."""
    assert_int8_and_right(QDQ)


def test_the_first_that_matches_ends_the_visit():
    """A FakeQuantize has two: one decomposes it, one takes in what stands before it; the new node is visited again."""
    decomposes, takes_in = "FakeQuantizeDecompositionTransformation", "FakeQuantizeTransformation"
    layer = opset1.convolution(
        fake_quantize(parameter((1, 4, 6, 6)), 0.0, 2.55), weights([4, 4, 1, 1], 0.01), [1, 1], [0, 0], [0, 0], [1, 1]
    )
    graph = model(opset1.sigmoid(opset1.relu(fake_quantize(layer, -1.0, 1.55, name="second"))))
    passes, trace, asked = ovlpt.PassConfig(), ovlpt.Trace(), []
    for kind in (decomposes, takes_in):
        passes.set_callback(kind, lambda node, kind=kind: asked.append((kind, node.get_friendly_name())))
    run_pass(graph, ovlpt.LowPrecision(pass_config=passes, trace=trace))
    done = [event.transformation for event in trace.of("second") if event.outcome is Outcome.TRANSFORMED]
    assert done == [decomposes, takes_in]
    assert [kind for kind, name in asked if name == "second"][:2] == [decomposes, decomposes]
