"""The plugin's model cache, whose key knows nothing of the plugin's own LPT."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt import data
from ovlpt.device.properties import F32
from ovlpt.openvino_api import Core, opset1
from tests.networks import const, model, parameter


@pytest.fixture
def cached(tmp_path):
    """A core that keeps what it compiles, and its folder."""
    core = Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")
    core.set_property({"CACHE_DIR": str(tmp_path / "cache")})
    return core, tmp_path / "cache"


def compressed():
    """Weights in 8 bits, activations in floats: it passes unchanged."""
    x = parameter([4, 32])
    integers = opset1.convert(const(np.arange(32 * 16).reshape(32, 16) % 100, "i8"), "f32")
    return model(opset1.matmul(x, opset1.multiply(integers, const(0.01)), False, False), x)


def is_from_cache(compiled) -> bool:
    return bool(compiled.get_property("LOADED_FROM_CACHE"))


@pytest.mark.filterwarnings("ignore:.*compressed weights only")
@pytest.mark.parametrize("build", [data.digits, compressed], ids=["quantized", "compressed"])
@pytest.mark.parametrize("first", ["ovlpt", "stock"])
def test_neither_takes_what_the_other_has_cached(cached, build, first):
    core, folder = cached
    given = core.read_model(build()) if build is data.digits else build()
    kinds = {
        "ovlpt": lambda: ovlpt.compile_model(given, "CPU", F32, core=core),
        "stock": lambda: core.compile_model(given, "CPU", F32),
    }
    order = [first, *(kinds.keys() - {first})]
    assert [is_from_cache(kinds[name]()) for name in order] == [False, False]
    assert len(list(folder.glob("*.blob"))) == 2
    assert [is_from_cache(kinds[name]()) for name in order] == [True, True]


@pytest.mark.parametrize(
    "other",
    [{"native_only": True}, {"plugin": ovlpt.plugin_config.cpu.config(False, True)}],
    ids=["native_only", "plugin"],
)
def test_other_settings_have_their_own(cached, other):
    core, _ = cached
    given = core.read_model(data.digits())
    assert not is_from_cache(ovlpt.compile_model(given, "CPU", F32, core=core))
    assert is_from_cache(ovlpt.compile_model(given, "CPU", F32, core=core))
    changed = ovlpt.compile_model(given, "CPU", F32, core=core, **other)
    image = data.heldout()[0][:1]
    plain = ovlpt.compile_model(given, "CPU", {**F32, "CACHE_DIR": ""}, core=core, **other)
    assert np.array_equal(changed([image])[0], plain([image])[0])


def test_a_saved_model_is_the_same_in_both_modes(cached, tmp_path):
    """So it does not matter that they share what is cached."""
    core, _ = cached
    ovlpt.save_model(ovlpt.transform(data.digits(), core=core), tmp_path / "saved.xml")
    image = data.heldout()[0][:1]
    modes = [{}, {"LP_TRANSFORMS_MODE": "NO"}]
    apart = [core.compile_model(tmp_path / "saved.xml", "CPU", {**F32, **each, "CACHE_DIR": ""}) for each in modes]
    shared = [core.compile_model(tmp_path / "saved.xml", "CPU", {**F32, **each}) for each in modes]
    answers = [compiled([image])[0] for compiled in (*apart, *shared)]
    assert all(np.array_equal(answer, answers[0]) for answer in answers)
    summaries = [ovlpt.execution_types(compiled).summary() for compiled in (*apart, *shared)]
    assert all(summary == summaries[0] for summary in summaries)
