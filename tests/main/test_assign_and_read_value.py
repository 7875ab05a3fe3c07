import numpy as np

from ovlpt import Params
from ovlpt.openvino_api import Model, PartialShape, opset8
from tests.conftest import Transformed
from tests.graphs import NodeFactory, f32, fake_quantize, opset1, opset6, parameter


def accumulator(initial: float, low: float = -1.28) -> Model:
    """The state is added to the input, quantized and kept."""
    data, start = parameter((1, 4)), f32(np.full((1, 4), initial))
    state = NodeFactory("opset6").create("ReadValue", [start.output(0)], {"variable_id": "state"})
    kept = opset6.assign(fake_quantize(opset1.add(data, state), low, 1.27), "state")
    return Model([opset1.result(opset1.sigmoid(state))], [kept], [data], "accumulator")


def test_the_variable_holds_integers():
    result = Transformed(accumulator(0.0))
    assert result.transformed("AssignAndReadValue")
    (variable,) = result.after.get_variables()
    assert variable.get_info().data_type.get_type_name() == "i8"
    (read,) = (node for node in result.after.get_ops() if node.get_type_name() == "ReadValue")
    assert read.get_output_element_type(0).get_type_name() == "i8"


def test_the_first_version_of_assign_becomes_the_second():
    """Python cannot give a model a sink of the first version."""
    data, start = parameter((1, 4)), f32(np.zeros((1, 4)))
    state = NodeFactory("opset3").create("ReadValue", [start.output(0)], {"variable_id": "state"})
    joined = fake_quantize(opset1.concat([data, state], 0), -1.28, 1.27)
    parts = opset1.split(joined, opset1.constant(np.int64(0)), 2)
    kept = NodeFactory("opset3").create("Assign", [parts.output(1)], {"variable_id": "state"})
    graph = Model([opset1.result(opset1.sigmoid(parts.output(0)))], [kept], [data], "delay")
    result = Transformed(graph)
    assert result.transformed("AssignAndReadValue")
    (sink,) = result.after.get_sinks()
    assert sink.get_type_info().version_id == "opset6"
    assert sink.input_value(0).get_index() == 1


def test_another_initial_value_stays():
    assert Transformed(accumulator(1.0)).reasons("AssignAndReadValue") == ["initial_value"]


def test_a_zero_point_stays():
    assert Transformed(accumulator(0.0, low=-0.64)).reasons("AssignAndReadValue") == ["zero_point"]


def cache(start: float = 0.0) -> Model:
    """Of open length: what was stored and new data, quantized together, are stored and read."""
    data, beams = parameter((-1, 4)), opset1.parameter([-1], np.int32)
    sizes = opset1.concat([opset1.constant(np.array([0], np.int64)), opset1.constant(np.array([4], np.int64))], 0)
    begin = opset1.broadcast(f32(start), sizes)
    read = opset6.read_value(begin, "state", np.float32, PartialShape([-1, 4]))
    past = opset8.gather(read, beams, opset1.constant(np.int64(0)))
    whole = fake_quantize(opset1.concat([past, data], 0), -1.28, 1.27)
    return Model([opset1.result(opset1.sigmoid(whole))], [opset6.assign(whole, "state")], [data, beams], "cache")


def test_a_cache_of_open_length_holds_integers():
    """It begins with no row, so with nothing but zeros, and what it holds is not quantized again."""
    result = Transformed(cache())
    assert result.transformed("AssignAndReadValue")
    (variable,) = result.after.get_variables()
    assert variable.get_info().data_type.get_type_name() == "i8"
    (quantize,) = (node for node in result.after.get_ops() if node.get_type_name() == "FakeQuantize")
    assert quantize.input_value(0).get_node().get_type_name() == "Parameter"
    assert Transformed(cache(0.5)).reasons("AssignAndReadValue") == ["initial_value"]


def test_the_native_library_asks_for_a_constant_start():
    assert Transformed(cache(), params=Params(native_only=True)).reasons("AssignAndReadValue") == ["initial_value"]
