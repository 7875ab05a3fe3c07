"""Clamp + FakeQuantize."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.fusions import RequantizationFusion, fuse
from ovlpt.openvino_api import Manager, Model, opset1
from ovlpt.trace import Trace
from tests.fusions import networks as net
from tests.fusions.networks import c, kinds, model_of
from tests.numpy_model import run


def clamped(low, high, ends, levels=256):
    x = net.parameter([1, 3, 1, 2000])
    return model_of(opset1.fake_quantize(opset1.clamp(x, low, high), *map(c, ends), levels), x)


def probe(low: float, high: float, ends) -> np.ndarray:
    """Values everywhere, and densely around the bounds and the ends of the intervals."""
    width = np.ptp(np.concatenate([np.ravel(end) for end in ends]))
    points = [np.linspace(min(low, -width) - 1, max(high, width) + 1, 800)]
    for centre in (low, high, *np.concatenate([np.ravel(end) for end in ends])):
        points.append(centre + np.linspace(-1, 1, 81) * width / 100)
        points.append([np.nextafter(np.float32(centre), np.float32(side)) for side in (-99, 99)])
    points = np.resize(np.concatenate(points), (1, 1, 1, 2000))
    return np.repeat(points, 3, 1).astype(np.float32)


def test_relu6_becomes_relu_exactly_where_nothing_changes() -> None:
    """Random intervals near the bound: fused if and only if the numbers are the same for every probe."""
    rng, counts = np.random.default_rng(0), {True: 0, False: 0}
    for trial in range(150):
        levels = int(rng.choice([256, 255, 16, 65536]))
        low = 0.0 if trial % 3 == 0 else -rng.uniform(0, 8)
        step = (6 - low) / (levels - 1)
        high = 6 + rng.uniform(-3, 3) * step if trial % 2 else rng.uniform(0.5, 12)
        shape = (1, 3, 1, 1) if trial % 5 == 0 else ()
        ends = [np.full(shape, end, np.float32) for end in (low, high, low, high)]
        if shape:
            ends[1] = ends[3] = (ends[1] * [[[[1.0]], [[0.9]], [[1.001]]]]).astype(np.float32)
        model = clamped(0.0, 6.0, ends, levels)
        reference = model_of(*_without_upper_bound(ends, levels))
        x = {"x": probe(0.0, 6.0, ends)}
        same = np.array_equal(run(model, x)[0], run(reference, x)[0])
        result = fuse(model)
        assert kinds(result) == ({"Relu": 1, "FakeQuantize": 1} if same else {"Clamp": 1, "FakeQuantize": 1})
        np.testing.assert_array_equal(run(model, x)[0], run(result, x)[0])
        counts[same] += 1
    assert min(counts.values()) > 30


def _without_upper_bound(ends, levels):
    x = net.parameter([1, 3, 1, 2000])
    return opset1.fake_quantize(opset1.relu(x), *map(c, ends), levels), x


@pytest.mark.parametrize(
    ("low", "high", "ends", "expected"),
    [
        (-1, 6, (0, 5), set()),  # both bounds are the quantization's own
        (-2, 3, (-2, 3), set()),
        (-1, 6, (-3, 5), {"Clamp"}),  # the lower bound decides, and Relu has another
        (0, 1, (-1, 1), {"Relu"}),
        (0, 1, (0, 1), {"Relu"}),
        (0, 1, (0, 2), {"Clamp"}),
        (0, 6, (0, 6.011), {"Relu"}),  # less than half a step below the top
        (0, 6, (0, 6.013), {"Clamp"}),
        (1, 6, (0, 6), {"Clamp"}),
    ],
)
def test_bounds(low, high, ends, expected) -> None:
    model = clamped(float(low), float(high), ends * 2)
    trace = Trace()
    result = fuse(model, trace)
    assert set(kinds(result)) - {"FakeQuantize"} == expected
    x = {"x": probe(low, high, ends)}
    np.testing.assert_array_equal(run(model, x)[0], run(result, x)[0])
    assert bool(trace.events[0].reason) == (expected == {"Clamp"})


def test_every_reader_must_quantize() -> None:
    x = net.parameter([1, 3, 4, 4])
    clamp = opset1.clamp(x, 0.0, 6.0)
    first, second = (opset1.fake_quantize(clamp, *map(c, (0, high) * 2), 256) for high in (5.0, 6.0))
    model = Model([opset1.result(first), opset1.result(second)], [x], "both")
    assert kinds(fuse(model)) == {"Relu": 1, "FakeQuantize": 2}
    model = Model([opset1.result(first), opset1.result(opset1.tanh(clamp))], [x], "one")
    trace = Trace()
    assert kinds(fuse(model, trace))["Clamp"] == 1
    assert [event.reason.code for event in trace] == ["other_reader"]


def test_never_the_reverse_and_alone() -> None:
    x = net.parameter([1, 3, 4, 4])
    model = model_of(opset1.fake_quantize(opset1.relu(x), *map(c, (0, 6, 0, 6)), 256), x)
    assert kinds(fuse(model)) == {"Relu": 1, "FakeQuantize": 1}
    model = clamped(0.0, 6.0, (0, 6, 0, 6))
    manager = Manager()
    manager.register_pass(RequantizationFusion())
    manager.run_passes(model)
    assert kinds(model) == {"Relu": 1, "FakeQuantize": 1}


def test_the_condition_as_amct_prints_it() -> None:
    """``(127 - offset) / scale < 6``, of a quantization to i8 that multiplies by the scale; half a step above 6, too."""
    rng, fused = np.random.default_rng(2), 0
    for _ in range(60):
        offset = int(rng.integers(-128, 100))
        scale = (127 - offset) / (6 * rng.uniform(0.7, 1.3))
        top = (127 - offset) / scale
        low = (-128 - offset) / scale
        becomes_relu = "Relu" in kinds(fuse(clamped(0.0, 6.0, [np.float32(end) for end in (low, top) * 2])))
        if top < 6 or top > 6 + 0.51 / scale:
            assert becomes_relu is (top < 6), (offset, scale)
        fused += becomes_relu
    assert 15 < fused < 45
