from ovlpt import Trace
from ovlpt.cleanup.fq_stripping import FQStrippingTransformation
from ovlpt.openvino_api import Manager
from tests.graphs import f32, fake_quantize, model, opset1, parameter


def stripped(*outputs):
    graph, trace = model(*outputs), Trace()
    manager = Manager()
    manager.register_pass(FQStrippingTransformation([65536], trace=trace))
    manager.run_passes(graph)
    return [node.get_type_name() for node in graph.get_ordered_ops()], [event.reason for event in trace]


def test_an_identity_of_so_many_levels_goes():
    kinds, reasons = stripped(opset1.relu(fake_quantize(parameter((1, 3)), -1.0, 1.0, 65536)))
    assert kinds == ["Parameter", "Relu", "Result"]
    assert reasons == [None]


def test_other_levels_stay():
    kinds, reasons = stripped(opset1.relu(fake_quantize(parameter((1, 3)), -1.0, 1.0, 256)))
    assert "FakeQuantize" in kinds
    assert reasons == []


def test_a_mapping_stays_with_the_distance():
    mapping = opset1.fake_quantize(parameter((1, 3)), f32(-1), f32(1), f32(-1), f32(3), 65536)
    kinds, (reason,) = stripped(opset1.relu(mapping))
    assert "FakeQuantize" in kinds
    assert reason.text == "its output interval lies 2 off its input interval"


def test_between_two_outputs_its_clipping_stays():
    """Without it both were one tensor, with the names of both."""
    relu = opset1.relu(parameter((1, 3)))
    kinds, _ = stripped(relu, fake_quantize(relu, -1.0, 1.0, 65536))
    assert "FakeQuantize" not in kinds
    assert {"Maximum", "Minimum"} < set(kinds)
