"""Transformed models that are kept: a second compilation loads what the first has made, or makes it anew."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import data, plugin_config
from ovlpt.config import Params
from ovlpt.device import compile as compile_module
from ovlpt.device import model_cache
from ovlpt.device.properties import EXACT
from ovlpt.trace import InputError
from tests.networks import encoder, one_convolution

PROPERTIES = {name: value for name, value in EXACT.items() if name != "CACHE_DIR"}


@pytest.fixture
def transformed(monkeypatch):
    """How many models were transformed."""
    models = []
    original = compile_module.transform

    def counting(model, *arguments, **settings):
        models.append(model)
        return original(model, *arguments, **settings)

    monkeypatch.setattr(compile_module, "transform", counting)
    return models


def compiled(core, folder, given=data.digits, **settings):
    return ovlpt.compile_model(
        given() if callable(given) else given, "CPU", PROPERTIES, core=core, cache_dir=folder, **settings
    )


def entries(folder) -> list:
    return sorted(folder.glob("ovlpt-*"))


def answers(network) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    given = [generator.uniform(0, 1, list(port.shape)).astype(np.float32) for port in network.inputs]
    return [np.array(each) for each in network(given).values()]


def assert_same(network, other) -> None:
    for one, two in zip(answers(network), answers(other), strict=True):
        assert np.array_equal(one, two)
    assert ovlpt.execution_types(network).summary() == ovlpt.execution_types(other).summary()


@pytest.mark.parametrize("given", [data.digits, encoder], ids=["path", "model"])
def test_the_second_is_loaded(core, tmp_path, transformed, given):
    given = given()
    first, second = (compiled(core, tmp_path, given) for _ in range(2))
    assert len(transformed) == len(entries(tmp_path)) == 1
    assert_same(second, first)
    assert_same(second, ovlpt.compile_model(given, "CPU", EXACT, core=core))
    assert second.get_property("LOADED_FROM_CACHE")


@pytest.mark.parametrize("where", ["core", "properties"])
def test_the_cache_of_the_plugin(tmp_path, transformed, where):
    core = openvino.Core()
    properties = dict(PROPERTIES)
    (core.set_property if where == "core" else properties.update)({"CACHE_DIR": str(tmp_path)})
    for _ in range(2):
        ovlpt.compile_model(data.digits(), "CPU", properties, core=core)
    assert len(transformed) == len(entries(tmp_path)) == 1


def test_without_a_folder(core, tmp_path, transformed):
    for properties in (PROPERTIES, EXACT):
        ovlpt.compile_model(data.digits(), "CPU", properties, core=core)
    assert len(transformed) == 2


def test_a_virtual_device(core, tmp_path, transformed):
    networks = [
        ovlpt.compile_model(data.digits(), device, PROPERTIES, core=core, cache_dir=tmp_path)
        for device in ("CPU", "AUTO:CPU", "AUTO:CPU")
    ]
    assert len(transformed) == len(entries(tmp_path)) == 2
    assert np.array_equal(answers(networks[2])[0], answers(networks[0])[0])


def other_version(monkeypatch):
    monkeypatch.setattr(openvino, "get_version", lambda: "2031.1")


def other_package(monkeypatch):
    monkeypatch.setattr(model_cache, "_content_of_package", lambda _: "other")


def other_processor(monkeypatch):
    other = "SSE41" if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2" else "AVX2"
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", other)


@pytest.mark.parametrize("change", [other_version, other_package, other_processor], ids=lambda each: each.__name__)
def test_what_makes_it_another(core, tmp_path, transformed, monkeypatch, change):
    compiled(core, tmp_path)
    change(monkeypatch)
    compiled(core, tmp_path)
    assert len(transformed) == len(entries(tmp_path)) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"native_only": True},
        {"plugin": plugin_config.cpu.config()},
        {"plugin": ovlpt.PluginConfig("plain")},
        {"plugin": ovlpt.PluginConfig("plain", params=Params(update_precisions=False))},
        {"plugin": ovlpt.PluginConfig("plain", disabled=("AddTransformation",))},
    ],
    ids=["native_only", "config", "plain", "params", "disabled"],
)
def test_settings_have_entries_of_their_own(core, tmp_path, transformed, settings):
    compiled(core, tmp_path)
    first, second = (compiled(core, tmp_path, **settings) for _ in range(2))
    assert len(transformed) == len(entries(tmp_path)) == 2
    assert_same(second, first)


def test_the_content_of_a_model_counts(core, tmp_path, transformed):
    """Not its path: weights that are changed are another model, a copy is the same."""
    for name in ("one", "two"):
        shutil.copy(data.digits(), tmp_path / f"{name}.xml")
        shutil.copy(data.digits().with_suffix(".bin"), tmp_path / f"{name}.bin")
        compiled(core, tmp_path / "cache", tmp_path / f"{name}.xml")
    assert len(transformed) == 1
    weights = np.fromfile(tmp_path / "one.bin", np.uint8)
    weights[:64] ^= 1
    weights.tofile(tmp_path / "one.bin")
    compiled(core, tmp_path / "cache", tmp_path / "one.xml")
    assert len(transformed) == 2


def test_functions_of_the_caller_have_no_content(core, tmp_path, transformed):
    config = plugin_config.cpu.config()
    for other in (
        ovlpt.PluginConfig("own", callbacks={"AddTransformation": lambda node: False}),
        ovlpt.PluginConfig("own", (ovlpt.PrecisionsRestriction.create("MatMul", lambda node: {0: "u8", 1: "i8"}),)),
    ):
        compiled(core, tmp_path, plugin=other)
    assert entries(tmp_path) == []
    compiled(core, tmp_path, plugin=config)  # the package's own
    assert len(entries(tmp_path)) == 1


def test_a_trace_asks_for_the_transformation(core, tmp_path):
    compiled(core, tmp_path)
    trace = ovlpt.Trace()
    compiled(core, tmp_path, trace=trace)
    assert len(trace) > 0


def test_what_is_not_transformed_is_not_kept(core, tmp_path):
    baked = ovlpt.transform(data.digits(), core=core)
    ovlpt.save_model(baked, tmp_path / "baked.xml")
    for given in (baked, tmp_path / "baked.xml"):
        compiled(core, tmp_path / "cache", given)
    for path in (data.digits_float(), tmp_path / "none.xml"):
        with pytest.raises(InputError, match=r"is not quantized|no file"):
            compiled(core, tmp_path / "cache", path, strict=True)
    with pytest.warns(UserWarning, match="is not quantized"):
        compiled(core, tmp_path / "cache", data.digits_float())
    with pytest.raises(InputError, match="no device"):
        ovlpt.compile_model(data.digits(), "GPU.7", core=core, cache_dir=tmp_path / "cache")
    assert entries(tmp_path / "cache") == []


def cut_off(file):
    file.write_bytes(file.read_bytes()[:-100])


def changed(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def sizes(entry):
    """Of the files, with no digit: OpenVINO numbers nodes over all models of a process, in names that the file has."""
    return {path.name: len(re.sub(rb"\d", b"", path.read_bytes())) for path in entry.iterdir() if path.name != "digest"}


@pytest.mark.parametrize("name", ["model.xml", "model.bin", "properties", "digest"])
@pytest.mark.parametrize("spoil", [cut_off, changed, lambda file: file.unlink()], ids=["cut", "changed", "gone"])
def test_an_entry_that_is_not_whole_is_made_anew(core, tmp_path, transformed, name, spoil):
    given = one_convolution()
    first = compiled(core, tmp_path, given)
    (entry,) = entries(tmp_path)
    before = sizes(entry)
    spoil(entry / name)
    second = compiled(core, tmp_path, given)
    assert len(transformed) == 2
    assert_same(second, first)
    assert sizes(entry) == before
    assert list(tmp_path.glob(".ovlpt-*")) == []
    compiled(core, tmp_path, given)
    assert len(transformed) == 2


def test_a_full_disk(core, tmp_path, transformed):
    """Nothing is kept, and the network runs."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, limits[1]))
    try:
        with pytest.warns(UserWarning, match="the transformed model is not kept in"):
            network = ovlpt.compile_model(data.digits(), "CPU", EXACT, core=core, cache_dir=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert entries(tmp_path) == []
    assert_same(network, compiled(core, tmp_path))
    assert len(entries(tmp_path)) == 1


def test_a_folder_that_cannot_be_made(core, tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="the transformed model is not kept in .*file"):
        ovlpt.compile_model(data.digits(), "CPU", EXACT, core=core, cache_dir=tmp_path / "file")


def test_another_process_was_faster(core, tmp_path, monkeypatch, transformed):
    """Its entry stays, and serves both."""
    given = one_convolution()
    original = model_cache.save_model

    def slowly(model, path):
        monkeypatch.setattr(model_cache, "save_model", original)
        compiled(core, tmp_path, given)  # the other one
        original(model, path)

    monkeypatch.setattr(model_cache, "save_model", slowly)
    first = compiled(core, tmp_path, given)
    assert len(transformed) == 2
    assert len(entries(tmp_path)) == 1
    assert_same(first, compiled(core, tmp_path, given))
    assert len(transformed) == 2


PROCESS = """
import sys, numpy, ovlpt
from ovlpt import data
for _ in range(2):
    network = ovlpt.compile_model(data.digits(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, cache_dir=sys.argv[1])
print(network([data.heldout()[0][:1]])[0].tobytes().hex())
"""


def test_two_processes_at_once(core, tmp_path):
    command = [sys.executable, "-W", "error::UserWarning", "-c", PROCESS, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert said[0] == said[1]
    assert len(entries(tmp_path)) == 1
    expected = compiled(core, tmp_path)([data.heldout()[0][:1]])[0]
    assert said[0].strip() == expected.tobytes().hex()
