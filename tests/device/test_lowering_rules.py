"""The table of lowering rules, and what the trace says of them. What each rule avoids is in test_lowering.py and its neighbours."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

from ovlpt import Trace, compile_model, data, transform
from ovlpt.device import lowering
from ovlpt.device.lowering.rules import RULES, Phase
from ovlpt.openvino_api import PartialShape
from ovlpt.trace import Outcome
from tests.device.test_lowering_of_branches import branching
from tests.graphs import fake_quantize, model, parameter
from tests.networks import one_convolution, shared_zero_point


def lowered(model, core, device: str = "CPU", **how) -> list[tuple[str, str]]:
    """Rule and operation of each event, in order."""
    trace, config = Trace(), None
    if device == "GPU":
        from ovlpt import plugin_config

        config = plugin_config.gpu.config()
    transform(model, device, config, core=core, trace=trace, **how)
    return [(event.transformation, event.operation) for event in trace if event.outcome is Outcome.LOWERED]


def test_no_rule_is_missing_in_the_table():
    """All functions that change the graph around a node, or say that there is nothing to change."""
    paths = Path(lowering.__file__).parent.glob("*.py")
    modules = [path.stem for path in paths if path.stem not in ("__init__", "links", "rules")]
    written = {
        name
        for module in modules
        for name, value in vars(import_module(f"ovlpt.device.lowering.{module}")).items()
        if inspect.isfunction(value)
        and value.__module__ == f"ovlpt.device.lowering.{module}"
        and not name.startswith("_")
        and value.__annotations__["return"] == "Node | None"
    }
    assert written == {rule.name for rule in RULES if rule.phase not in (Phase.MODEL, Phase.BODIES)}


def test_a_rule_stands_once_for_an_operation_on_a_device():
    rows = [
        (rule.name, operation, device) for rule in RULES for operation in rule.operations for device in rule.devices
    ]
    assert len(rows) == len(set(rows))


def test_the_trace_says_what_was_changed_and_why(core):
    trace = Trace()
    transform(one_convolution(), core=core, trace=trace)
    (event,) = (event for event in trace.of("conv") if event.outcome is Outcome.LOWERED)
    assert (event.transformation, event.operation) == ("compute_scale_in_f64", "Convolution")
    assert event.reason.code == "lowered"
    assert "throws" in event.reason.text


@pytest.mark.parametrize(
    ("serializable", "rules"), [(False, {"compute_scale_in_f64"}), (True, {"compute_scale_in_f64", "hide_from_lpt"})]
)
def test_a_saved_model_is_changed_in_more_places(serializable, rules, core):
    assert {rule for rule, _ in lowered(one_convolution(), core, serializable=serializable)} == rules


def test_rules_of_a_gpu(core):
    found = lowered(shared_zero_point(), core, "GPU", precision="f32")
    assert {rule for rule, _ in found} == {"guard_scale", "keep_apart", "hide_end"}
    assert ("keep_apart", "Subtract") in found
    in_half = lowered(shared_zero_point(), core, "GPU", precision="f16")
    assert {rule for rule, _ in in_half} == {"guard_scale", "keep_sums_in_f32", "hide_end"}


def test_what_was_lowered_before_is_not_changed_again(core):
    assert not lowered(transform(data.digits(), core=core), core)


def test_compiling_tells_as_much(core):
    trace = Trace()
    compile_model(one_convolution(), core=core, trace=trace)
    assert trace.summary()["compute_scale_in_f64", "lowered"] == 1


@pytest.mark.parametrize("shape", [(-1, 3, 6, 6), (-1, 3, -1, -1)], ids=str)
def test_an_output_that_nothing_may_be_fused_into_keeps_its_names(core, shape):
    """What follows an If of dynamic sizes waits for it."""
    branches = branching(parameter((1, 3, 6, 6)), [-1, 3, -1, -1])
    net = model(branches, fake_quantize(branches, 0.0, 5.1))
    for port, name in zip(net.outputs, ("branches", "quantized"), strict=True):
        port.get_tensor().set_names({name})
    net.reshape({net.input(0): PartialShape(list(shape))})
    result = transform(net, core=core)
    assert any(node.get_friendly_name().endswith("/Alone") for node in result.get_ops())
    assert [port.get_names() for port in result.outputs] == [port.get_names() for port in net.outputs]
