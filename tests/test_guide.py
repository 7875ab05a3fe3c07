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
from ovlpt.low_precision import CLEANUP, MAIN, MARKUP, PASSES, PREREQUISITES
from ovlpt.main.convolution_backprop_data import ConvolutionBackpropDataTransformation
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.openvino_api import Model, Node, opset1
from ovlpt.operations import OPERATIONS
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
from tools.parity.compare import compare

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


def outcomes(kind: type, graph: Model, callback=None, disabled: bool = False) -> list[Outcome]:
    passes, trace = ovlpt.PassConfig({kind.__name__} if disabled else set()), ovlpt.Trace()
    if callback is not None:
        passes.set_callback(kind, callback)
    run_pass(graph, ovlpt.LowPrecision(pass_config=passes, trace=trace))
    return [event.outcome for event in trace if event.transformation == kind.__name__]


def rows_of(kind: type) -> set[str]:
    return {name.split(".")[1] for name in kind.type_names()}


@pytest.mark.parametrize("kind", MAIN, ids=lambda each: each.__name__)
def test_each_transformation_asks_its_callback(kind):
    """What it transforms without one stays with one that says so, and where it is disabled."""
    graphs = [quantized(case, variants(case)) for case in CASES if operation(case.name) in rows_of(kind)]
    handled = [graph for graph in graphs if Outcome.TRANSFORMED in outcomes(kind, graph.clone(), lambda node: False)]
    assert handled
    for graph in handled:
        found = outcomes(kind, graph.clone(), lambda node: True)
        assert Outcome.DISABLED in found
        assert Outcome.TRANSFORMED not in found
        assert Outcome.TRANSFORMED not in outcomes(kind, graph, disabled=True)


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


def test_a_residual_sum_runs_in_the_kernel_of_the_layer_before(core):
    """With the quantization before the sum and the one after it, as in the guide's table of counters."""

    def layer(data, name: str) -> Node:
        node = opset1.convolution(data, weights([16, 16, 3, 3], 0.01), [1, 1], [1, 1], [1, 1], [1, 1])
        node.set_friendly_name(name)
        return node

    first = layer(fake_quantize(parameter((1, 16, 14, 14)), 0.0, 2.55, name="of the input"), "first")
    short = fake_quantize(opset1.relu(first), 0.0, 25.5, name="short")
    middle = fake_quantize(opset1.relu(layer(short, "second")), 0.0, 255.0, name="middle")
    branch = fake_quantize(layer(middle, "third"), -128.0, 127.0, name="branch")
    add = opset1.add(branch, short)
    add.set_friendly_name("add")
    after = fake_quantize(opset1.relu(add), 0.0, 255.0, name="after")
    compiled = ovlpt.compile_model(model(layer(after, "last")), "CPU", {**EXACT, "PERF_COUNT": True}, core=core)
    layers = ovlpt.execution_types(compiled)
    status = {row.split()[0]: row.split()[1] for row in layers.table().splitlines()}
    assert {status[name] for name in ("short", "middle", "branch", "add", "after")} == {"NOT_RUN"}
    (third,) = (each for each in layers.executed if each.name == "third")
    assert third.is_int8
    assert {"branch", "add", "after"} <= set(third.original_names)


def test_what_is_not_quantized_runs_in_f32(core):
    layer = pointwise(fake_quantize(parameter((1, 4, 6, 6)), 0.0, 2.55))
    compiled = ovlpt.compile_model(model(opset1.softmax(layer, 1)), "CPU", EXACT, core=core)
    suffixes = {each.layer_type: each.exec_type.rsplit("_")[-1] for each in ovlpt.execution_types(compiled).executed}
    assert suffixes["Convolution"] == "I8"
    assert suffixes["Softmax"] == "f32"


def test_an_onnx_file_with_pairs():
    """QuantizeLinear and DequantizeLinear, as read from the file."""
    assert_int8_and_right(QDQ)


def test_the_first_that_matches_ends_the_visit():
    """A FakeQuantize has two: one decomposes it, one absorbs what stands before it; the new node is visited again."""
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


def test_more_transformations_and_operations_than_the_guide_counts():
    assert len(set(PASSES)) > 45
    assert sum(row.kind != "absent" for row in OPERATIONS.values()) > 30
    assert len(MARKUP) == 8


def pointwise(data) -> Node:
    node = opset1.convolution(data, weights([4, 4, 1, 1], 0.01), [1, 1], [0, 0], [0, 0], [1, 1])
    node.set_friendly_name("conv")
    return node


def test_an_operation_without_a_rule_stays_in_its_precision():
    graph = model(pointwise(opset1.sin(fake_quantize(parameter((1, 4, 6, 6)), 0.0, 2.55))))
    run_pass(graph, ovlpt.LowPrecision())
    assert {value.get_element_type().get_type_name() for value in the(graph, "Sin").inputs()} == {"f32"}
    assert the(graph, "FakeQuantize").get_output_element_type(0).get_type_name() == "f32"
    assert the(graph, "Convolution").get_input_element_type(0).get_type_name() == "f32"


@pytest.mark.parametrize("low, high", [(0.0, 2.55), (-1.0, 1.55)])
def test_both_ways_to_quantize_give_the_same_result(low, high):
    """A FakeQuantize; and one that gives integers, with their dequantization."""
    stored = opset1.fake_quantize(parameter((1, 4, 6, 6)), f32(low), f32(high), f32(0.0), f32(255.0), 256)
    pair = dequantization(opset1.convert(stored, "u8"), 0.01, -low / 0.01 if low else None)
    graphs = [model(pointwise(data)) for data in (fake_quantize(parameter((1, 4, 6, 6)), low, high), pair)]
    for graph in graphs:
        run_pass(graph, ovlpt.LowPrecision())
    assert the(graphs[0], "FakeQuantize").get_output_element_type(0).get_type_name() == "u8"
    found = compare(*graphs)
    assert found.equal, found.differences


def test_a_disabled_transformation_leaves_its_operation_in_the_original_precision():
    graph = model(pointwise(fake_quantize(parameter((1, 4, 6, 6)), 0.0, 2.55)))
    run_pass(graph, ovlpt.LowPrecision(pass_config=ovlpt.PassConfig({"ConvolutionTransformation"})))
    assert the(graph, "FakeQuantize").get_output_element_type(0).get_type_name() == "f32"
    assert the(graph, "Convolution").get_input_element_type(0).get_type_name() == "f32"


GUIDES_RESTRICTIONS = {
    "Convolution": {0: ("u8",), 1: ("i8",)},
    "ConvolutionBackpropData": {0: ("u8", "i8"), 1: ("i8",)},
    "GroupConvolution": {0: ("u8",), 1: ("i8",)},
    "Multiply": {0: ("u8",), 1: ("i8",)},
}


@pytest.mark.parametrize("kind", GUIDES_RESTRICTIONS)
def test_the_restrictions_of_the_guide(kind):
    made = {
        "Convolution": pointwise,
        "ConvolutionBackpropData": lambda x: opset1.convolution_backprop_data(x, weights([4, 2, 2, 2], 0.01), [2, 2]),
        "GroupConvolution": lambda x: opset1.group_convolution(
            x, weights([4, 1, 1, 1, 1], 0.01), [1, 1], [0, 0], [0, 0], [1, 1]
        ),
        "Multiply": lambda x: opset1.multiply(x, f32(np.full((1, 4, 1, 1), 0.5))),
    }
    graph, attributes = model(made[kind](fake_quantize(parameter((1, 4, 6, 6)), -1.28, 1.27))), AttributeTable()
    all_of_them = [ovlpt.PrecisionsRestriction.create(name, ports) for name, ports in GUIDES_RESTRICTIONS.items()]
    run_pass(graph, MarkupPrecisions(all_of_them, attributes=attributes))
    for port, types in GUIDES_RESTRICTIONS[kind].items():
        assert attributes.get(the(graph, kind).input(port), Precisions).value == types


@pytest.mark.parametrize("restricted, read", [(False, "f32"), (True, "u8")])
def test_a_restriction_per_tensor_makes_one_interval_of_several(restricted, read):
    """The branches of a Concat would come with a scale each, and the convolution sums over its channels. As in the native
    library, it takes a restriction of precisions beside it.
    """
    branches = [fake_quantize(parameter((1, 2, 6, 6), name), 0.0, high) for name, high in (("x", 2.55), ("z", 5.1))]
    graph = model(pointwise(opset1.concat(branches, 1)))
    granularity = [ovlpt.QuantizationGranularityRestriction.create("Convolution", [0])] if restricted else []
    run_pass(graph, ovlpt.LowPrecision([U8], granularity))
    assert the(graph, "Convolution").get_input_element_type(0).get_type_name() == read


@pytest.mark.parametrize("precision", ["f32", "f16"])
def test_the_precision_of_the_dequantization_of_a_model_in_f16(precision):
    """In f32 by default; what it ends in is f16 either way."""

    def half(value) -> Node:
        return opset1.constant(np.asarray(value, np.float16))

    ends = [half(end) for end in (0, 2.55, 0, 2.55)]
    data = opset1.fake_quantize(parameter((1, 4, 6, 6), precision=np.float16), *ends, 256)
    kernel = opset1.multiply(opset1.convert(integers([4, 4, 1, 1]), "f16"), half(0.01))
    graph = model(opset1.relu(opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1])))
    settings = {} if precision == "f32" else {"params": ovlpt.Params(deq_precision=precision)}
    run_pass(graph, ovlpt.LowPrecision(**settings))
    dequantizes = the(graph, "Multiply")
    assert [each.get_element_type().get_type_name() for each in dequantizes.inputs()] == [precision] * 2
    assert dequantizes.get_output_element_type(0).get_type_name() == "f16"
