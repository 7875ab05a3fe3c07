"""Pairs of weights that saturate 16 bits: predicted from the weights, and seen on a CPU without VNNI."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ovlpt
from ovlpt import cli
from ovlpt.device.overflow import overflow_risks, weights_by_channel
from ovlpt.openvino_api import Core, opset1
from tests.conftest import TRUTH
from tests.graphs import dequantization, fake_quantize, model, parameter, run

CHANNELS = 32
ATTRIBUTES = [1, 1], [0, 0], [0, 0], [1, 1]


def of_pairs(first: int, value: int = 127, shape=(16, CHANNELS)):
    """Two neighbouring input channels have large weights, the first of them at ``first``; the others have none."""
    weights = np.zeros(shape, np.int8)
    weights[..., first : first + 2] = value
    return weights


def constant(weights):
    return dequantization(opset1.constant(np.ascontiguousarray(weights)), 0.01, name="weights")


def image(low: float = 0.0):
    return fake_quantize(parameter((1, CHANNELS, 9, 9)), low, low + 2.55)


def convolution(first, low=0.0):
    return opset1.convolution(image(low), constant(of_pairs(first)[..., None, None]), *ATTRIBUTES)


def groups(first, low=0.0):
    kernel = of_pairs(first, shape=(4, 8, CHANNELS // 4))[..., None, None]
    return opset1.group_convolution(image(low), constant(kernel), *ATTRIBUTES)


def transposed(first, low=0.0):
    return opset1.convolution_backprop_data(image(low), constant(of_pairs(first).T[..., None, None]), [1, 1])


def transposed_groups(first, low=0.0):
    kernel = of_pairs(first, shape=(4, 8, CHANNELS // 4)).swapaxes(1, 2)[..., None, None]
    return opset1.group_convolution_backprop_data(image(low), constant(kernel), [1, 1])


def product_(first, low=0.0):
    data = fake_quantize(parameter((4, CHANNELS)), low, low + 2.55)
    return opset1.matmul(data, constant(of_pairs(first)), False, True)


def product_not_transposed(first, low=0.0):
    data = fake_quantize(parameter((4, CHANNELS)), low, low + 2.55)
    return opset1.matmul(data, constant(of_pairs(first).T), False, False)


def depthwise(first, low=0.0):
    kernel = np.full((CHANNELS, 1, 1, 3, 3), 127, np.int8)
    return opset1.group_convolution(image(low), constant(kernel), *ATTRIBUTES)


LAYERS = {
    "Convolution": convolution,
    "groups": groups,
    "transposed": transposed,
    "transposed groups": transposed_groups,
    "MatMul": product_,
    "MatMul, not transposed": product_not_transposed,
    "depthwise": depthwise,
}
CASES = [(name, first, low) for name in LAYERS for first in (0, 1) for low in (0.0, -1.28)]


def risks(graph, core):
    return overflow_risks(ovlpt.transform(graph, lowered=False, core=core))


@pytest.mark.parametrize("name, first, low", CASES)
def test_which_pairs(name, first, low, core):
    """Channels 0 and 1 are a pair, 1 and 2 are none."""
    found = risks(model(LAYERS[name](first, low)), core)
    expected = first == 0 and name != "depthwise"
    assert bool(found) is expected
    if expected:
        (risk,) = found
        assert risk.worst == 254
        assert risk.channel_share == 1
        assert risk.pair_share == (1 / 4 if "groups" in name else 1 / 16)


def test_the_bound():
    """What vpmaddubsw adds leaves 16 bits for some data exactly where the sum of the weights exceeds 128."""
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    extremes = np.array([x * a + y * b for x, y in product((0, 255), repeat=2)])
    assert np.array_equal((extremes > 32767).any(0) | (extremes < -32768).any(0), np.abs(a + b) > 128)


@pytest.mark.parametrize("channels, grouped, expected", [(3, False, 0), (3, True, 1), (4, True, 0)])
def test_an_odd_last_channel(channels, grouped, expected, core):
    """In a grouped convolution it is a pair with the first channel of the kernel's next position."""
    kernel = np.zeros((2, 4, channels, 3, 3), np.int8)
    kernel[:, :, -1, 0, 0] = kernel[:, :, 0, 0, 1] = 127
    data = fake_quantize(parameter((1, 2 * channels, 9, 9)), 0.0, 2.55)
    if grouped:
        graph = model(opset1.group_convolution(data, constant(kernel), *ATTRIBUTES))
    else:
        whole = np.concatenate([kernel, kernel], 2).reshape(8, -1, 3, 3)[:, :channels]
        data = fake_quantize(parameter((1, channels, 9, 9)), 0.0, 2.55)
        graph = model(opset1.convolution(data, constant(whole), *ATTRIBUTES))
    assert len(risks(graph, core)) == expected


@pytest.mark.parametrize("value, expected", [(64, False), (65, True), (-64, False), (-65, True)])
def test_the_bound_of_a_layer(value, expected, core):
    weights = of_pairs(0, value)[..., None, None]
    assert bool(risks(model(opset1.convolution(image(), constant(weights), *ATTRIBUTES)), core)) is expected


def test_weights_by_channel():
    """With data that is 1 in one input channel only, an output channel is the sum of its weights of that channel."""
    generator = np.random.default_rng(0)
    for build, shape in (
        (lambda data, kernel: opset1.convolution(data, kernel, *ATTRIBUTES), (5, 4, 3, 2)),
        (lambda data, kernel: opset1.group_convolution(data, kernel, *ATTRIBUTES), (2, 3, 2, 3, 2)),
    ):
        values = generator.integers(-9, 9, shape).astype(np.float32)
        graph = model(build(parameter((1, 4, 3, 2)), opset1.constant(values)))
        node = next(node for node in graph.get_ops() if node.get_friendly_name() == "y")
        found = weights_by_channel(node, values)
        for channel in range(4):
            data = np.zeros((1, 4, 3, 2), np.float32)
            data[:, channel] = 1
            result = run(graph, [data])[0].ravel()
            of_group = slice(None) if len(shape) == 4 else slice(channel // 2 * 3, channel // 2 * 3 + 3)
            expected = found[of_group, channel if len(shape) == 4 else channel % 2].sum(-1)
            assert np.array_equal(result[of_group], expected)


def write_differences(path: str) -> None:
    """Largest relative difference of each case from the float network, for the largest data."""
    core, found = Core(), []
    for name, first, low in CASES:
        graph = model(LAYERS[name](first, low))
        data = [np.full(list(graph.inputs[0].shape), 10, np.float32)]
        exact = {"INFERENCE_PRECISION_HINT": "f32"}
        low_precision = ovlpt.compile_model(graph, "CPU", exact, core=core)(data)[0]
        real = core.compile_model(graph, "CPU", TRUTH)(data)[0]
        found.append(float(np.abs(low_precision - real).max() / np.abs(real).max()))
    Path(path).write_text(json.dumps(found))


def test_the_numbers_are_wrong_where_predicted(tmp_path, core):
    """On AVX2 without VNNI; a CPU that has it is told to do without."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip(f"no x86 CPU ({platform.machine()}): nothing saturates")
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "OV_CPU_MAX_ISA": "AVX2"}
    code = f"import sys; sys.path[:] = {sys.path!r}; from tests.device import test_overflow; test_overflow.write_differences(sys.argv[1])"
    path = tmp_path / "differences.json"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code, path], env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for (name, first, low), difference in zip(CASES, json.loads(path.read_text()), strict=True):
        predicted = bool(risks(model(LAYERS[name](first, low)), core))
        assert (difference > 0.1) is predicted, (name, first, low, difference)
        assert predicted or difference < 1e-5


def test_explain_names_the_layers(tmp_path, capsys):
    import openvino

    path = str(tmp_path / "net.xml")
    openvino.save_model(model(convolution(0)), path, compress_to_fp16=False)
    assert cli.main(["explain", path, "--details"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "y (16 of 16 channels)" in printed
    assert "OverflowFix.ENABLE" in printed
