"""What tests of transformations say: this becomes that, or stays as it is for a reason."""

from __future__ import annotations

import json
import os
import signal
import textwrap
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from ovlpt import LowPrecision, Params, PassConfig, Trace, data
from ovlpt.device.properties import simulation
from ovlpt.graph.text import diff, to_text
from ovlpt.openvino_api import Core, Manager, Model
from ovlpt.trace import Outcome
from tests.graphs import run
from tests.ways import pytest_collection_modifyitems as pytest_collection_modifyitems

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
TRUTH = simulation()
OUTPUT_SCHEMA = json.loads(data.schema().read_text("utf-8"))

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as a shell starts what runs in the background; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and tables would be as narrow as its terminal
os.unsetenv("COLUMNS")  # readline sets it, too, of which Python's own environment does not know


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--each-way", action="store_true", help="run each graph in each form (tests/ways.py)")


def cpu_flags() -> set[str]:
    """What this CPU has, without the limits of this process; empty where no file says so."""
    flags = Path("/proc/cpuinfo")
    return set(flags.read_text().split()) if flags.exists() else set()


def has_avx2() -> bool:
    """Whether this CPU has AVX2, and this process may use it."""
    if os.environ.get("ONEDNN_MAX_CPU_ISA", "").startswith("SSE"):
        return False
    found = cpu_flags()
    return not found or "avx2" in found


def is_avx2_vnni() -> bool:
    """Whether kernels of this process are those of AVX2 with VNNI, by the CPU or by a limit."""
    limit, found = os.environ.get("ONEDNN_MAX_CPU_ISA", ""), cpu_flags()
    return limit == "AVX2_VNNI" or (not limit and "avx_vnni" in found and "avx512f" not in found)


# Without AVX2 the plugin throws, with its own LPT too.
needs_avx2 = pytest.mark.skipif(not has_avx2(), reason="without AVX2 the plugin has no kernel for this layer")


@pytest.fixture(scope="session")
def core() -> Core:
    core = Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")
    return core


@pytest.fixture
def infer(core):
    """Outputs of a model on the CPU plugin with its own LPT off."""

    def run(model: Model, inputs, lpt: str = "NO", **properties) -> list[np.ndarray]:
        compiled = core.compile_model(model, "CPU", {**TRUTH, "LP_TRANSFORMS_MODE": lpt, **properties})
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


class Transformed:
    """A model before and after `LowPrecision`, with the trace."""

    def __init__(self, before: Model, params: Params | None = None, **settings):
        self.before, self.trace = before, Trace()
        settings = {"pass_config": PassConfig({"MultiplyToGroupConvolutionTransformation"})} | settings
        self.after = before.clone()
        manager = Manager()
        manager.register_pass(LowPrecision(params=params, trace=self.trace, **settings))
        manager.run_passes(self.after)

    def reasons(self, transformation: str) -> list[str]:
        """The codes with which a transformation refused."""
        return [
            event.reason.code
            for event in self.trace
            if event.transformation == f"{transformation}Transformation" and event.outcome == Outcome.REJECTED
        ]

    def transformed(self, transformation: str) -> bool:
        name = f"{transformation}Transformation"
        return any(event.transformation == name and event.outcome == Outcome.TRANSFORMED for event in self.trace)

    def assert_numbers(self, tolerance: float = 1e-5, batch: int = 2, steps: int = 1) -> None:
        """Equal results before and after on data that covers the intervals, to a part of the results' range; of the last
        of several ``steps`` where there are variables.
        """
        rng = np.random.default_rng(1)
        shapes = [
            [size.get_length() if size.is_static else batch for size in p.get_partial_shape()]
            for p in self.before.get_parameters()
        ]
        inputs = [
            rng.integers(0, 100, shape).astype(p.get_element_type().to_dtype())
            if p.get_element_type().is_integral()
            else rng.uniform(-1.5, 3, shape).astype(np.float32)
            for p, shape in zip(self.before.get_parameters(), shapes, strict=True)
        ]
        for before, after in zip(run(self.before, inputs, steps), run(self.after, inputs, steps), strict=True):
            assert before.shape == after.shape
            spread = max(float(np.ptp(before)), 1e-6)
            assert np.abs(before - after).max() <= tolerance * spread


@pytest.fixture
def assert_transformed():
    """Call with the model and the expected text of the result without its Results; checks text, numbers and the
    names of outputs.
    """

    def check(
        model: Model, expected: str, params: Params | None = None, numbers: bool = True, **settings
    ) -> Transformed:
        result = Transformed(model, params, **settings)
        lines = to_text(result.after).splitlines()
        text = "\n".join(line for line in lines if " = Result(" not in line)
        wanted = textwrap.dedent(expected).strip()
        assert text == wanted, "\n" + diff(wanted, text)
        names = [
            [node.input_value(0).get_node().get_friendly_name() for node in m.get_results()]
            for m in (model, result.after)
        ]
        assert names[0] == names[1]
        if numbers:
            result.assert_numbers()
        return result

    return check


@pytest.fixture
def assert_rejected():
    """Call with the model, a transformation's name and the expected code; checks that nothing was transformed."""

    def check(model: Model, transformation: str, code: str, params: Params | None = None, **settings) -> Transformed:
        result = Transformed(model, params, **settings)
        assert code in result.reasons(transformation), result.reasons(transformation)
        assert not result.transformed(transformation)
        return result

    return check


def assert_documented(content: dict[str, object]) -> None:
    """What a command wrote follows the schema in the package, and has no key that the schema does not describe."""
    Draft202012Validator(OUTPUT_SCHEMA).validate(content)
    Draft202012Validator(_closed(OUTPUT_SCHEMA)).validate(content)


def _closed(schema: object) -> object:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _closed(value) for key, value in schema.items()}
    return made | {"additionalProperties": False} if schema.get("type") == "object" and "properties" in schema else made
