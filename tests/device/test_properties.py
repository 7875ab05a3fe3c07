"""How models are compiled whose numbers are compared."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ovlpt
from ovlpt import data
from ovlpt.device.properties import EXACT, simulation
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.run import run
from ovlpt.inspect.runs import TRANSFORMATION
from ovlpt.inspect.verify import verify
from ovlpt.openvino_api import Core, opset1
from tests.graphs import f32, fake_quantize, model, parameter
from tests.lowered import content_of

ROOT = Path(__file__).parents[2]


def test_integer_weights_and_float_data_are_multiplied_in_floats():
    """On a CPU with VNNI the plugin quantizes such data by itself, under a kernel of the name f32."""
    generator = np.random.default_rng(0)
    integers = generator.integers(0, 256, (64, 256)).astype(np.uint8)
    weights = opset1.multiply(opset1.convert(opset1.constant(integers), "f32"), f32(np.full((64, 1), 0.01)))
    x = parameter([8, 256])
    net = model(opset1.matmul(x, weights, False, True))
    values = generator.standard_normal((8, 256)).astype(np.float32)
    expected = values.astype(np.float64) @ (integers * 0.01).T
    for properties in (EXACT, simulation()):
        found = Core().compile_model(net, "CPU", properties)([values])[0]
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_a_mean_over_the_pixels_is_scaled_by_channel_in_the_simulation():
    """The plugin takes the scale, or a per-channel interval, into a reduction that drops axes, and computes both wrongly:
    of a network that ends so (a pooled transformer) ovlpt alone was right, and `compare` blamed it.
    """
    scales = np.random.default_rng(0).uniform(0.5, 2, (1, 32)).astype(np.float32)
    x = parameter([1, 4, 4, 32])
    data = fake_quantize(x, -2.56, 2.54)
    mean = opset1.reduce_mean(data, opset1.constant(np.array([1, 2])), False)
    net = model(fake_quantize(opset1.multiply(mean, scales), -1.28, 1.27), x)
    values = np.random.default_rng(1).integers(-128, 128, (1, 4, 4, 32)).astype(np.float32) / 50
    expected = np.round(np.clip(values.mean((1, 2), dtype=np.float64) * scales, -1.28, 1.27) * 100) / 100
    assert np.abs(simulate(net, Core())([values])[0] - expected).max() < 0.011  # a tie at most
    found = ovlpt.compare(net, inputs=[values], seconds=0)
    assert min(found.sqnr[TRANSFORMATION].values()) > 40


@pytest.mark.parametrize(
    "compare",
    [
        lambda core: run(data.digits(), core=core),
        lambda core: ovlpt.check(data.digits(), against="stock", core=core),
        lambda core: ovlpt.compare(data.digits(), core=core, seconds=0),
        lambda core: ovlpt.bench(data.digits(), core=core, iterations=1, memory=False),
        lambda core: verify(data.digits(), core=core, layers=1),
    ],
    ids=["run", "check", "compare", "bench", "verify"],
)
def test_no_comparison_reads_or_writes_the_users_cache(compare, tmp_path):
    """The plugin's own LPT is not part of the cache's key: ovlpt and the simulation would get each other's blobs."""
    core = Core()
    core.set_property({"CACHE_DIR": str(tmp_path)})
    compare(core)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_models_that_are_built_alike_have_one_content(tmp_path):
    """A simulation is made once for the cases of a test that differ in something else."""

    def content(scale: float, levels: int, size: int) -> str:
        return content_of(model(opset1.relu(fake_quantize(parameter([1, size]), 0.0, scale, levels))), tmp_path)

    same = content(2.55, 256, 8)
    assert content(2.55, 256, 8) == same
    assert len({same, content(2.5500002, 256, 8), content(2.55, 255, 8), content(2.55, 256, -1)}) == 4


def test_one_place_knows_how_the_truth_is_compiled():
    """What switches the plugin's own LPT off elsewhere is the transformed model, or a question to the plugin."""
    others = {
        path.relative_to(ROOT).as_posix()
        for folder in ("ovlpt", "plugin_config", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r'"LP_TRANSFORMS_MODE": ("NO"|lpt|mode)', path.read_text())
    }
    asks = "plugin_config/this_cpu.py"
    assert others == {"ovlpt/device/properties.py", asks, "tools/fuzz/numbers.py"}
