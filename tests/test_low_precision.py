from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest

import ovlpt
from ovlpt.graph.text import to_text
from ovlpt.low_precision import MAIN
from ovlpt.main.convolution import ConvolutionTransformation
from ovlpt.openvino_api import Manager, opset1
from ovlpt.trace import Outcome, Trace
from tests.conftest import TRUTH, assert_close, inputs_of, run_pass
from tests.networks import const, encoder, int8_weights, model, one_convolution, parameter, quantized, residual

CONVOLUTION_AFTER = """
x: f32[1,16,8,8] = Parameter
quantize: u8[1,16,8,8] = FakeQuantize(x, 0, 2.55, 0, 255) {levels=256}
conv_original: f32[1,32,8,8] = Convolution(quantize, i8[32,16,3,3]) {pads_begin=[1, 1], pads_end=[1, 1]}
conv: f32[1,32,8,8] = Multiply(conv_original, f32[1,32,1,1])
"""


def config(core):
    return ovlpt.plugin_config.for_device(core, "CPU")


def test_a_quantized_convolution_in_a_manager(core):
    net = one_convolution()
    manager = Manager()
    manager.register_pass(ovlpt.LowPrecision())
    manager.run_passes(net)
    assert "\n".join(to_text(net).splitlines()[:-1]) == CONVOLUTION_AFTER.strip()


def test_asymmetric_activations_keep_their_zero_point(core):
    net = run_pass(one_convolution(-1.0, 1.55), ovlpt.LowPrecision.from_config(config(core)))
    assert "Subtract(quantize, u8[1,16,1,1])" in to_text(net)
    stored = (
        next(node for node in net.get_ops() if node.get_friendly_name() == "conv/ZeroPoint").input_value(1).get_node()
    )
    assert np.array_equal(np.unique(stored.data), [100])


@pytest.mark.parametrize("build", [one_convolution, residual, encoder])
def test_numbers_and_names_of_outputs_stay(core, infer, build):
    net = build()
    names = [port.get_names() for port in net.outputs]
    transformed = ovlpt.transform(net, core=core)
    assert [port.get_names() for port in transformed.outputs] == names
    inputs = inputs_of(net)
    # a tie in a quantization may move one level, and the layers after spread it: a small part of the output
    expected = infer(net, inputs, "YES")
    scale = max(float(np.abs(value).max()) for value in expected)
    assert_close(infer(transformed, inputs), expected, level=0.02 * scale, share=1)


def test_a_second_run_changes_nothing_and_says_so():
    trace = Trace()
    net = run_pass(one_convolution(), ovlpt.LowPrecision())
    before = to_text(net)
    run_pass(net, ovlpt.LowPrecision(trace=trace))
    assert to_text(net) == before
    assert [event.reason.code for event in trace] == ["transformed_before"]


@pytest.mark.parametrize("broken", range(3))
def test_a_failure_leaves_the_model_unchanged(monkeypatch, broken):
    """Fails at the first, the second and the third convolution: halfway through the graph."""
    net, calls = residual(), []
    before = to_text(net)
    plain = ConvolutionTransformation.transform

    def transform(self, node):
        calls.append(node)
        if len(calls) > broken:
            raise ZeroDivisionError("broken on purpose")
        plain(self, node)

    monkeypatch.setattr(ConvolutionTransformation, "transform", transform)
    with pytest.raises((RuntimeError, ZeroDivisionError), match="broken on purpose"):
        run_pass(net, ovlpt.LowPrecision())
    assert to_text(net) == before
    assert not net.has_rt_info(["ovlpt", "transformed"])


def test_every_refusal_has_a_reason(core):
    trace = Trace()
    ovlpt.transform(residual(), core=core, trace=trace)
    assert any(event.outcome is Outcome.TRANSFORMED for event in trace)
    for event in trace:
        if event.outcome is not Outcome.TRANSFORMED:
            assert event.reason.code
            assert event.reason.text


def test_precision_restriction():
    restriction = ovlpt.PrecisionsRestriction.create("Convolution", {0: ["i8"], 1: ["i8"]})
    net = run_pass(one_convolution(), ovlpt.LowPrecision([restriction]))
    assert "quantize: i8" in to_text(net)


def test_an_empty_restriction_switches_an_operation_off():
    net = run_pass(one_convolution(), ovlpt.LowPrecision([ovlpt.PrecisionsRestriction.create("Convolution", {})]))
    assert "quantize: f32" in to_text(net)


def test_update_precisions_off_changes_no_type():
    net = one_convolution()
    run_pass(net, ovlpt.LowPrecision(params=ovlpt.Params(update_precisions=False)))
    kinds = ("FakeQuantize", "Convolution")
    found = {kind: [node for node in net.get_ops() if node.get_type_name() == kind] for kind in kinds}
    assert all(found.values())
    assert {each.get_output_element_type(0).get_type_name() for kind in kinds for each in found[kind]} == {"f32"}
    intervals = [float(found["FakeQuantize"][0].input_value(port).get_node().data) for port in (3, 4)]
    assert intervals == [0, 255]  # transformed all the same


def test_a_callback_leaves_a_node_alone():
    trace, passes = Trace(), ovlpt.PassConfig()
    passes.set_callback(ConvolutionTransformation, lambda node: node.get_friendly_name() == "conv")
    net = run_pass(one_convolution(), ovlpt.LowPrecision(pass_config=passes, trace=trace))
    assert "quantize: f32" in to_text(net)
    assert [event.node for event in trace if event.outcome is Outcome.DISABLED] == ["conv"]


def test_a_misspelt_pass_is_refused_with_the_nearest_name():
    sentence = r'no pass "ConvolutionTransformatoin" \(did you mean "ConvolutionTransformation"\?\)'
    disabled, enabled, asked = ovlpt.PassConfig(), ovlpt.PassConfig({"ConvolutionTransformation"}), ovlpt.PassConfig()
    disabled.disable("ConvolutionTransformatoin")
    enabled.enable("ConvolutionTransformatoin")  # the other would stay disabled
    asked.set_callback("ConvolutionTransformatoin", lambda node: True)
    for passes in (disabled, enabled, asked):
        for step in (ovlpt.LowPrecision, ovlpt.CommonOptimizations):
            with pytest.raises(ovlpt.InputError, match=sentence):
                step(pass_config=passes)
    for settings in ({"disabled": ("ConvolutionTransformatoin",)}, {"callbacks": asked.callbacks}):
        with pytest.raises(ovlpt.InputError, match=sentence):
            ovlpt.transform(one_convolution(), plugin=ovlpt.PluginConfig("own", **settings))


@pytest.mark.parametrize("transformation", MAIN, ids=lambda each: each.__name__)
def test_each_transformation_is_registrable_alone(transformation):
    net = one_convolution()
    before = to_text(net)
    run_pass(net, transformation())
    assert to_text(net) == before or transformation is ConvolutionTransformation


def test_wrong_restrictions_are_refused_when_built():
    with pytest.raises(ValueError, match=r'no row for operation "Convolutoin" \(did you mean "Convolution"\?\)'):
        ovlpt.PrecisionsRestriction.create("Convolutoin", {0: ["u8"]})
    with pytest.raises(ValueError, match="MatMul has inputs 0 and 1, not 2"):
        ovlpt.PrecisionsRestriction.create("MatMul", {2: ["u8"]})
    with pytest.raises(ValueError, match='no element type "int8"'):
        ovlpt.PrecisionsRestriction.create("MatMul", {0: ["int8"]})
    for wrong in ("u16", "f32"):
        with pytest.raises(ValueError, match=f'no kernel reads "{wrong}" as low precision; give "u8" or "i8"'):
            ovlpt.PrecisionsRestriction.create("MatMul", {0: ["u8", wrong]})
        with pytest.raises(ValueError, match=f'no kernel reads "{wrong}" as low precision'):
            ovlpt.Params(default_precisions=(wrong,))
    with pytest.raises(
        ValueError, match="MatMul lists no element type for input 0, 1; name one, leave the input out, or"
    ):
        ovlpt.PrecisionsRestriction.create("MatMul", {(0, 1): []})
    with pytest.raises(ValueError, match="default_precisions lists no element type"):
        ovlpt.Params(default_precisions=())


@pytest.mark.parametrize("operation", [opset1.multiply, opset1.add, opset1.subtract])
def test_data_that_a_constant_broadcasts_only_when_it_runs(core, operation):
    """An dynamic size that turns out to be 1: the layer after must not read the data without the constant."""
    x = parameter([-1, 3, -1])
    joined = operation(quantized(x, -2, 2), const(np.full((1, 1, 4), 0.7)))
    net = model(opset1.matmul(joined, int8_weights([5, 4]), False, True), x)
    data = np.random.default_rng(0).uniform(-2, 2, (2, 3, 1)).astype(np.float32)
    expected = core.compile_model(net, "CPU", TRUTH)([data])[0]
    found = ovlpt.compile_model(net, properties={"INFERENCE_PRECISION_HINT": "f32"}, core=core)([data])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_passes_leave_no_memory_after():
    """They are made anew for each model."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    def make(count):
        for _ in range(count):
            for kind in MAIN:
                kind()

    if not Path("/proc/self/statm").exists():
        pytest.skip("the system does not say how much memory the process has")
    make(20)
    before = resident()
    make(100)
    assert resident() - before < 4e6  # 9 MB where each has a pattern of its own
