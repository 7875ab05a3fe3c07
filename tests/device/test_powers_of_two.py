"""Scales that are powers of two throughout, as some quantizers choose them: sums then often lie halfway between two levels,
and whatever rounds a constant decides the level. The numbers of every form are the simulation's, bit by bit.
"""

import numpy as np
import pytest

from ovlpt.openvino_api import PartialShape, opset1
from tests.conftest import TRUTH
from tests.lowered import compiled_in_each
from tests.networks import const, model, parameter

STEP = np.float32(2**-6)  # of the activations; the interval reaches from -2 to 2
NAMES = (
    "biased", "clipped", "grouped", "strided", "columns", "read twice", "residual", "joined", "pooled", "gated", "leaky",
    "equal intervals",
)  # fmt: skip


def rounded(data, paired, signed=True):
    """On a grid of ``STEP``, by one FakeQuantize or a pair of Quantize and Dequantize."""
    low, high = (-128, 127) if signed else (0, 255)
    ends = [const(end * STEP) for end in (low, high)]
    if not paired:
        return opset1.fake_quantize(data, *ends, *ends, 256)
    stored = opset1.convert(opset1.fake_quantize(data, *ends, const(low), const(high), 256), "i8" if signed else "u8")
    return opset1.multiply(opset1.convert(stored, "f32"), const(STEP))


def stored(shape, scale, most=63, seed=0):
    """Integers of 8 bits and their scale; of weights, no more than no CPU saturates the sum of two products."""
    values = np.random.default_rng(seed).integers(-most, most + 1, shape)
    return opset1.multiply(opset1.convert(const(values, "i8"), "f32"), const(scale))


def bias(shape, kind):
    """ "stored": in 8 bits; "small": far below a step, and yet exact beside the sums in f32."""
    if kind == "stored":
        return stored(shape, np.float32(2**-18), 127, seed=5)
    return const(np.random.default_rng(5).integers(-4, 5, shape) * 2.0**-20)


def layer(data, kind, outputs=8, size=3, stride=1, seed=0):
    channels, pads = data.get_output_partial_shape(0)[1].get_length(), [size // 2] * 2
    weights = stored([outputs, channels, size, size], np.float32(2**-8), seed=seed)
    made = opset1.convolution(data, weights, [stride] * 2, pads, pads, [1, 1])
    return opset1.add(made, bias([1, outputs, 1, 1], kind))


def product(data, kind, outputs, seed=0):
    inner = data.get_output_partial_shape(0)[2].get_length()
    made = opset1.matmul(data, stored([outputs, inner], np.float32(2**-8), seed=seed), False, True)
    return opset1.add(made, bias([outputs], kind))


def grouped(data, kind):
    weights = stored([8, 1, 1, 3, 3], np.float32(2**-7))
    return opset1.add(opset1.group_convolution(data, weights, [1, 1], [1, 1], [1, 1], [1, 1]), bias([1, 8, 1, 1], kind))


def gate(data, kind, q):
    mean = q(opset1.reduce_mean(data, const([2, 3], "i64"), True))
    inner = q(opset1.relu(layer(mean, kind, 4, 1)))
    half = opset1.add(opset1.multiply(layer(inner, kind, 8, 1, seed=1), const(0.25)), const(0.5))
    return opset1.multiply(data, q(opset1.clamp(half, 0.0, 1.0)))


def network(name, paired, kind):
    def q(data, signed=True):
        return rounded(data, paired, signed)

    if name in ("columns", "read twice"):
        x = parameter([2, 6, 16])
        middle = product(q(x), kind, 8)
        if name == "columns":
            return model(q(product(q(opset1.relu(middle), False), kind, 12, seed=1)), x)
        other = q(opset1.clamp(opset1.add(opset1.multiply(middle, const(0.25)), const(0.5)), 0.0, 1.0))
        return model(q(product(q(opset1.multiply(q(middle), other)), kind, 12, seed=1)), x)
    x = parameter([2, 8, 8, 8])
    data = q(x)
    if name == "equal intervals":
        ends = [const(np.full((1, 8, 1, 1), end * STEP)) for end in (-128, 127)]
        return model(layer(opset1.fake_quantize(x, *ends, *ends, 256), kind), x)
    made = {
        "biased": lambda: layer(data, kind),
        "clipped": lambda: opset1.clamp(layer(data, kind), 0.0, 1.5),
        "grouped": lambda: grouped(data, kind),
        "strided": lambda: layer(data, kind, 8, 3, 2),
        "residual": lambda: opset1.relu(opset1.add(data, q(layer(data, kind)))),
        "joined": lambda: opset1.concat([q(grouped(data, kind)), q(layer(data, kind, 4))], 1),
        "pooled": lambda: opset1.avg_pool(opset1.max_pool(data, [1, 1], [1, 1], [1, 1], [3, 3]), [2, 2], [0, 0], [0, 0], [2, 2], True),
        "gated": lambda: gate(data, kind, q),
        "leaky": lambda: opset1.prelu(layer(data, kind), const([0.125])),
    }[name]()  # fmt: skip
    return model(q(layer(q(made), kind, 4, 1, seed=2)), x)


@pytest.mark.parametrize("sizes", ["fixed", "batch open"])
@pytest.mark.parametrize("kind", ["stored", "small"])
@pytest.mark.parametrize("paired", [False, True], ids=["one operation", "pairs"])
@pytest.mark.parametrize("name", NAMES)
def test_scales_that_are_powers_of_two(core, tmp_path, name, paired, kind, sizes):
    net = network(name, paired, kind)
    shape = list(net.input(0).get_shape())
    random = np.random.default_rng(3)
    inputs = [
        random.integers(-300, 301, shape).astype(np.float32) * STEP / 2 for _ in range(2)
    ]  # on the grid, or between
    if sizes != "fixed":
        net.reshape(PartialShape([-1, *shape[1:]]))
    simulated = core.compile_model(net, "CPU", TRUTH)
    truths = [np.array(simulated([each])[0]) for each in inputs]
    assert all(np.unique(truth).size > 20 for truth in truths), "the levels differ"
    for form, compiled in compiled_in_each(net, core, tmp_path):
        for each, truth in zip(inputs, truths, strict=True):
            np.testing.assert_array_equal(compiled([each])[0], truth, err_msg=form)
