import numpy as np

from ovlpt.openvino_api import Model
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
