"""Numbers before against numbers after, in numpy and on the plugin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovlpt.fusions import fuse
from ovlpt.openvino_api import Model
from ovlpt.trace import Trace
from tests.numpy_model import run, run_on_plugin

TOLERANCE = 1e-5


def inputs_of(model: Model, seed: int = 7) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {p.get_friendly_name(): rng.normal(size=list(p.shape)).astype(np.float32) for p in model.get_parameters()}


def difference(expected: np.ndarray, actual: np.ndarray) -> float:
    """Relative to the largest expected value."""
    assert expected.shape == actual.shape
    return float(np.abs(expected - actual).max() / np.abs(expected).max())


def any_sizes(test):
    """Draws the seed of a generator of channel counts, groups, strides, kernels and paddings."""
    drawn = given(seed=st.integers(0, 2**20))(test)
    return settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])(drawn)


@pytest.fixture
def fused() -> Callable[..., tuple[Model, Trace]]:
    """Fuse, and compare with numpy; ``plugin``: the CPU plugin's numbers, too."""

    def check(model: Model, plugin: bool = False, tolerance: float = TOLERANCE) -> tuple[Model, Trace]:
        trace = Trace()
        before = [set(output.get_names()) for output in model.outputs]
        inputs = inputs_of(model)
        expected = run(model, inputs)
        result = fuse(model, trace)
        assert [set(output.get_names()) for output in result.outputs] == before
        results = [run(result, inputs)] + ([run_on_plugin(result, inputs)] if plugin else [])
        for actual in results:
            for mine, other in zip(expected, actual, strict=True):
                assert difference(mine, other) <= tolerance
        return result, trace

    return check
