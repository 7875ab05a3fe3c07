from __future__ import annotations

import numpy as np
import pytest

from ovlpt.graph.text import diff, to_text
from ovlpt.openvino_api import Core, Manager, Model
from ovlpt.trace import Outcome, Trace

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


@pytest.fixture(scope="session")
def core() -> Core:
    core = Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")
    return core


@pytest.fixture
def infer(core):
    """Outputs of a model on the CPU plugin with its own LPT off."""

    def run(model: Model, inputs, lpt: str = "NO", **properties) -> list[np.ndarray]:
        compiled = core.compile_model(model, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": lpt, **properties})
        return [np.array(value) for value in compiled(inputs).values()]

    return run


def inputs_of(model: Model, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(list(port.shape)).astype(np.float32) for port in model.inputs]


def assert_close(actual, expected, level: float = 0.0, share: float = 0.0) -> None:
    """Equal within 1e-5 of the largest value, except a ``share`` of the elements that may be off by ``level``."""
    for a, b in zip(actual, expected, strict=True):
        off = np.abs(a.astype(np.float64) - b) > 1e-5 * max(float(np.abs(b).max()), 1e-30)
        assert off.mean() <= share, f"{off.sum()} of {off.size} elements differ, by up to {np.abs(a - b).max():.4g}"
        if level:
            assert np.abs(a - b).max() <= level


def run_pass(model: Model, *passes) -> Model:
    manager = Manager()
    for each in passes:
        manager.register_pass(each)
    manager.run_passes(model)
    return model


@pytest.fixture
def assert_transformed():
    """The pass turns the model into this text and records it."""

    def check(model: Model, transformation: type, expected: str, **settings) -> Model:
        trace = Trace()
        names = [sorted(port.get_names()) for port in model.outputs]
        run_pass(model, transformation(trace=trace, **settings))
        difference = diff("\n".join(line.strip() for line in expected.strip().splitlines()), to_text(model))
        assert not difference, difference
        assert any(event.outcome is Outcome.TRANSFORMED for event in trace)
        assert [sorted(port.get_names()) for port in model.outputs] == names
        return model

    return check


@pytest.fixture
def assert_rejected():
    """The pass leaves the model alone and says why."""

    def check(model: Model, transformation: type, code: str, **settings) -> None:
        trace, before = Trace(), to_text(model)
        run_pass(model, transformation(trace=trace, **settings))
        assert not diff(before, to_text(model))
        codes = [event.reason.code for event in trace if event.outcome is Outcome.REJECTED]
        assert code in codes, codes

    return check
