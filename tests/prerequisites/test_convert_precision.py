import numpy as np
import pytest

import ovlpt
from ovlpt.graph.bodies import all_nodes
from ovlpt.openvino_api import Model, Node, PartialShape, opset1, opset6, opset8
from ovlpt.prerequisites.convert_precision import ConvertPrecision
from tests.conftest import EXACT, run_pass
from tests.graphs import CORE, f32, fake_quantize, model, parameter
from tests.prerequisites.test_quantize_dequantize import assert_as_stock, weighted


def half(values):
    return opset1.constant(np.asarray(values, np.float16))


def network() -> Model:
    """A quantized convolution in f16 with a bias; the output is called y and its tensor probabilities."""
    data = parameter((1, 3, 4, 4), precision=np.float16)
    data.output(0).get_tensor().set_names({"image"})
    quantize = opset1.fake_quantize(data, half(0), half(2.55), half(0), half(2.55), 256)
    rng = np.random.default_rng(0)
    values = half(rng.uniform(-1, 1, (4, 3, 3, 3)))
    kernel = opset1.fake_quantize(values, half(-1), half(1), half(-1), half(1), 255)
    node = opset1.convolution(quantize, kernel, [1, 1], [1, 1], [1, 1], [1, 1])
    node = opset1.relu(opset1.add(node, half(rng.uniform(-1, 1, (1, 4, 1, 1)))))
    node.set_friendly_name("y")
    node.output(0).get_tensor().set_names({"probabilities"})
    return Model([node], [data], "half")


def types(model: Model) -> set[str]:
    return {output.get_element_type().get_type_name() for node in model.get_ops() for output in node.outputs()}


def test_only_inputs_and_outputs_stay_f16():
    model = run_pass(network(), ConvertPrecision())
    ports = [*model.inputs, *model.outputs]
    assert [port.get_element_type().get_type_name() for port in ports] == ["f16", "f16"]
    assert [port.get_any_name() for port in ports] == ["image", "probabilities"]
    assert model.get_results()[0].input_value(0).get_node().get_friendly_name() == "y"
    computed = [node for node in model.get_ops() if node.get_type_name() in ("Add", "Convolution", "FakeQuantize")]
    assert {node.get_output_element_type(0).get_type_name() for node in computed} == {"f32"}


def test_a_model_in_f16_runs_in_int8():
    image = np.random.default_rng(0).uniform(0, 2.55, (1, 3, 4, 4)).astype(np.float16)
    compiled = ovlpt.compile_model(network(), "CPU", EXACT)
    layers = ovlpt.execution_types(compiled).executed
    assert [layer.is_int8 for layer in layers if layer.layer_type == "Convolution"] == [True]
    (result,) = compiled([image]).values()
    (expected,) = CORE.compile_model(network(), "CPU", EXACT)([image]).values()
    assert result.dtype == expected.dtype == np.float16
    assert np.abs(result - expected).max() <= 0.01 * np.abs(expected).max()


@pytest.mark.parametrize("back", [False, True], ids=["f16", "to f16 and back"])
def test_whoever_holds_what_was_replaced_adds_no_readers(back):
    data = parameter((1, 4), precision=np.float32 if back else np.int8)
    relu = opset1.relu(data)
    value = opset1.convert(relu, "f16")
    value = opset1.convert(value, "f32") if back else opset1.negative(value)
    model = Model([opset1.abs(value)], [data], "held")
    held = model.get_ordered_ops()
    run_pass(model, ConvertPrecision())
    (target,) = relu.output(0).get_target_inputs()
    assert {target.get_node().get_instance_id()} < {node.get_instance_id() for node in model.get_ops()}
    assert held


def test_constants_that_are_only_stored_in_f16_stay():
    data, stored = parameter((1, 3)), half(np.ones((1, 3)))
    model = Model([opset1.add(data, opset1.convert(stored, "f32"))], [data], "stored")
    assert types(run_pass(model, ConvertPrecision())) == {"f16", "f32"}


@pytest.mark.parametrize("precision", ["f16", "f64"])
@pytest.mark.parametrize("where", ["data", "weights", "both"])
def test_there_and_back(where, precision, core):
    """The plugin has no arithmetic of these types, and rounds nothing on the way."""

    def way(value, name: str):
        return opset1.convert(opset1.convert(value, precision), "f32") if where in (name, "both") else value

    data = way(fake_quantize(parameter((1, 16, 8, 8)), 0.0, 2.55), "data")
    values = np.random.default_rng(0).uniform(-0.4, 0.4, (8, 16, 3, 3))
    kernel = way(fake_quantize(f32(values), -1.0, 1.0, 255), "weights")
    graph = model(opset1.relu(opset1.convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1])))
    assert_as_stock(graph, core)
    assert weighted(ovlpt.compile_model(graph, "CPU", EXACT, core=core)) == [True]


@pytest.mark.parametrize("precision", ["f16", "f64"])
def test_a_way_with_an_operation_on_it(precision, core):
    data = opset1.convert(fake_quantize(parameter((1, 16, 8, 8)), 0.0, 2.55), precision)
    pooled = opset1.convert(opset1.max_pool(data, [2, 2], [0, 0], [0, 0], [2, 2]), "f32")
    kernel = fake_quantize(f32(np.random.default_rng(0).uniform(-0.4, 0.4, (8, 16, 3, 3))), -1.0, 1.0, 255)
    assert_as_stock(model(opset1.convolution(pooled, kernel, [1, 1], [0, 0], [0, 0], [1, 1])), core)


def test_a_way_to_an_output_stays():
    data = fake_quantize(parameter((1, 3, 4, 4)), 0.0, 2.55)
    graph = model(opset1.convert(data, "f16"), opset1.relu(data))
    result = run_pass(graph, ConvertPrecision())
    assert [port.get_element_type().get_type_name() for port in result.outputs] == ["f16", "f32"]
    assert result.get_results()[0].input_value(0).get_node().get_friendly_name() == "y0"


def test_a_way_from_an_input_to_an_output_stays(core):
    """Without it both were one value, with the names of both."""
    x = parameter((1, 3, 4, 4))
    x.output(0).get_tensor().set_names({"x"})
    back = opset1.convert(opset1.convert(x, "f16"), "f32")
    back.output(0).get_tensor().set_names({"y"})
    transformed = ovlpt.transform(model(back, fake_quantize(x, 0.0, 2.55)), core=core)
    assert transformed.inputs[0].get_names() == {"x"}
    assert transformed.outputs[0].get_names() == {"y"}


def in_half(value, *ends):
    """A FakeQuantize in f32 in a model of f16, as ModelOpt's files have it."""
    return opset1.convert(fake_quantize(opset1.convert(value, "f32"), *ends), "f16")


def a_variable(given) -> tuple[Node, list[Node]]:
    total = opset1.add(opset6.read_value(half(np.ones((1, 4))), "v", np.float16, PartialShape([1, 4])), given)
    return total, [opset6.assign(total, "v")]


def a_body(given) -> tuple[Node, list[Node]]:
    inner = parameter((1, 4), "inner", np.float16)
    end, node = opset1.relu(inner), opset8.tensor_iterator()
    node.set_body(Model([opset1.result(end)], [inner], "body"))
    node.set_sliced_input(inner, given.output(0), 0, 1, 1, -1, 1)
    return node.get_concatenated_slices(end.output(0), 0, 1, 1, -1, 1).get_node(), []


@pytest.mark.parametrize("declared", [a_variable, a_body])
def test_variables_and_bodies_keep_their_type_beside_a_way(declared, core):
    data, given = parameter((1, 16, 8, 8), precision=np.float16), parameter((1, 4), "given", np.float16)
    values = half(np.random.default_rng(0).uniform(-0.4, 0.4, (8, 16, 3, 3)))
    kernel = in_half(values, -1.0, 1.0, 255)
    layer = opset1.convolution(in_half(data, 0.0, 2.55), kernel, [1, 1], [1, 1], [1, 1], [1, 1])
    node, sinks = declared(given)
    graph = Model([opset1.result(layer), opset1.result(node)], sinks, [data, given], "beside")
    assert_as_stock(graph, core)
    assert weighted(ovlpt.compile_model(graph, "CPU", EXACT, core=core)) == [True]
    result = run_pass(graph, ConvertPrecision())
    kept = [each for each in all_nodes(result) if each.get_type_name() in ("Assign", "ReadValue", "TensorIterator")]
    assert {each.get_output_element_type(0).get_type_name() for each in kept} == {"f16"}
