"""Layers for which another kernel is asked for, since it is faster on such CPUs: the numbers stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ovlpt
from ovlpt import plugin_config
from ovlpt.device import execution_types, this_cpu
from ovlpt.device.lowering import kernels
from ovlpt.graph.relaxed import has_older_kernels
from ovlpt.openvino_api import opset1
from tests.conftest import EXACT, assert_close, inputs_of
from tests.networks import const, model, parameter, quantized

AFTER = {
    "a quantization": lambda value: quantized(opset1.relu(value), 0, 3),
    "a clip": lambda value: opset1.clamp(value, -0.2, 0.3),
    "a slope by channel": lambda value: opset1.prelu(value, const(np.linspace(-0.1, 0.4, 24))),
    "a function": opset1.sigmoid,
    "a sum": lambda value: quantized(opset1.add(value, opset1.sin(value)), -3, 3),
    "nothing": lambda value: value,
}


def first_layer(sizes, low=0.0, after=AFTER["a quantization"], kernel=3, stride=2, pads=(1, 1)):
    x = parameter(sizes)
    stored = np.random.default_rng(0).integers(-31, 32, (24, sizes[1], kernel, kernel))
    scale = const(np.geomspace(4e-3, 1e-2, 24).reshape(24, 1, 1, 1))
    weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), scale)
    begin, end = pads
    layer = opset1.convolution(quantized(x, low, low + 2.55), weights, [stride] * 2, [begin] * 2, [end] * 2, [1, 1])
    layer = opset1.add(layer, const(np.linspace(-0.5, 0.5, 24).reshape(1, 24, 1, 1)))
    return model(after(layer), x)


def asked(net, **how) -> list[bool]:
    """Of each Convolution of the transformed model, whether older kernels are asked for."""
    lowered = ovlpt.transform(net, **how)
    return [has_older_kernels(node) for node in lowered.get_ordered_ops() if node.get_type_name() == "Convolution"]


@pytest.fixture
def slow(monkeypatch):
    """As on a CPU with VNNI."""
    monkeypatch.setattr(kernels, "reads_few_channels_slowly", lambda: True)


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize("low", [0.0, -1.0, -1.28], ids=["u8", "zero_point", "i8"])
@pytest.mark.parametrize("channels", [2, 3, 4])
def test_the_first_layer_has_the_same_numbers(core, infer, slow, channels, low, after):
    for sizes in ((1, channels, 9, 14), (-1, channels, -1, -1)):
        net, fixed = first_layer(sizes, low, after), first_layer((1, channels, 9, 14), low, after)
        values = [np.random.default_rng(1).uniform(low, low + 2.5, (1, channels, 9, 14)).astype(np.float32)]
        lowered = ovlpt.transform(net, core=core, serializable=False)
        (expected,) = infer(fixed, values, "NO")
        assert_close(infer(lowered, values), [expected], level=0.02 * np.abs(expected).max(), share=0.01)


@pytest.mark.parametrize(
    "kernel, stride, pads", [(7, 2, (3, 3)), (4, 4, (0, 0)), (6, 2, (2, 1)), (1, 1, (0, 0)), (1, 2, (0, 0))]
)
def test_windows_and_strides(core, infer, slow, kernel, stride, pads):
    net = first_layer((2, 3, 16, 24), -1.0, kernel=kernel, stride=stride, pads=pads)
    values = inputs_of(net)
    lowered = ovlpt.transform(net, core=core, serializable=False)
    assert_close(infer(lowered, values), infer(net, values, "NO"), level=0.05, share=0.01)


def test_the_kernel_is_another(core, slow):
    compiled = ovlpt.compile_model(first_layer((1, 3, 32, 32)), "CPU", EXACT, core=core)
    (layer,) = (each for each in execution_types(compiled).executed if each.layer_type == "Convolution")
    assert layer.is_int8
    assert "brg" not in layer.exec_type.lower()


@pytest.mark.parametrize("low", [0.0, -1.0], ids=["u8", "zero_point"])
@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("kernel", [3, 7])
def test_a_layer_in_float_is_rounded(core, infer, slow, kernel, channels, low):
    """With u8 weights that do not fit into i8 the layer is in float: older kernels would leave its FakeQuantize out."""
    x, rng = parameter((1, channels, 16, 16)), np.random.default_rng(0)
    weights = opset1.subtract(
        opset1.convert(const(rng.integers(0, 256, (8, channels, kernel, kernel)), "u8"), "f32"), const(114.0)
    )
    around = [kernel // 2] * 2
    layer = opset1.convolution(
        quantized(x, low, low + 2.55), opset1.multiply(weights, const(0.01)), [2, 2], around, around, [1, 1]
    )
    layer = quantized(opset1.add(layer, const(np.linspace(-0.5, 0.5, 8).reshape(1, 8, 1, 1))), 0, 3, levels=16)
    after = opset1.subtract(opset1.convert(const(rng.integers(0, 256, (4, 8, 1, 1)), "u8"), "f32"), const(114.0))
    net = model(
        opset1.convolution(layer, opset1.multiply(after, const(0.01)), [1, 1], [0, 0], [0, 0], [1, 1]),
        x,
    )
    assert asked(net, serializable=False) == [False, False]
    values = inputs_of(net)
    lowered = ovlpt.transform(net, core=core, serializable=False)
    assert_close(infer(lowered, values), infer(net, values, "NO"), level=0.01, share=0.01)


def test_where_it_is_asked_for(core, slow):
    assert asked(first_layer((1, 3, 8, 8)), serializable=False) == [True]
    assert asked(first_layer((1, 3, 8, 8)), serializable=True) == [False]  # which may be for another CPU
    assert asked(first_layer((1, 3, 8, 8)), serializable=False, native_only=True) == [False]
    own = plugin_config.for_device(core, "CPU")
    off = replace(own, params=replace(own.params, faster_kernels=False))
    assert asked(first_layer((1, 3, 8, 8)), serializable=False, config=off) == [False]
    for channels in (1, 5, 16):
        assert asked(first_layer((1, channels, 8, 8)), serializable=False) == [False]
    for kernel, stride in ((4, 4), (6, 2), (9, 2)):  # slower with two threads
        assert asked(first_layer((1, 3, 16, 16), kernel=kernel, stride=stride), serializable=False) == [False]


def test_only_on_cpus_where_it_was_measured(monkeypatch):
    monkeypatch.setattr(kernels, "reads_few_channels_slowly", lambda: False)
    assert asked(first_layer((1, 3, 8, 8)), serializable=False) == [False]


def test_the_processors_flags_say_what_a_layer_shows(monkeypatch):
    by_default = this_cpu.reads_few_channels_slowly()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "")  # a limit that is none: a layer is compiled
    assert this_cpu.reads_few_channels_slowly.__wrapped__() == by_default
