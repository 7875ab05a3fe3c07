"""The library is built and loaded in processes of their own: this one never sees a GPU."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import openvino
import pytest

import ovlpt
from ovlpt import cli, data, plugin_config
from ovlpt.device import virtual_gpu
from ovlpt.openvino_api import RELEASE, openvino_module, opset1
from ovlpt.trace import InputError
from tests.gpu_networks import NONE
from tests.networks import encoder, int8_weights, model, one_convolution, parameter, quantized, residual

opset14 = openvino_module("opset14")


def test_both_tables_name_the_same_devices():
    source = (Path(virtual_gpu.__file__).parent / "device.c").read_text()
    assert set(re.findall(r'^    \{"(\w+)", +"Virtual', source, re.MULTILINE)) == set(virtual_gpu.GPUS)


@pytest.mark.parametrize("execute", [False, True])
def test_the_source_compiles_without_warnings(execute):
    folder = Path(virtual_gpu.__file__).parent
    command = ["cc", *virtual_gpu._FLAGS, "-Wall", "-Wextra", "-Werror", "-o", os.devnull]
    sources = [str(folder / name) for name in virtual_gpu._SOURCES[execute]]
    done = subprocess.run([*command, *sources], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_source_is_compiled():
    listed = {name for names in virtual_gpu._SOURCES.values() for name in names}
    assert listed == {path.name for path in Path(virtual_gpu.__file__).parent.glob("*.c")}


@pytest.mark.parametrize("execute", [False, True])
def test_only_opencl_is_visible(execute):
    built = virtual_gpu.library(execute)
    symbols = subprocess.run(["nm", "-D", "--defined-only", built], capture_output=True, text=True)
    names = [line.split()[-1] for line in symbols.stdout.splitlines()]
    assert len(names) > 60
    assert all(name.startswith("cl") for name in names)


@pytest.mark.parametrize(
    ("net", "gpu"), [(one_convolution, "xelp"), (encoder, "dg2"), (encoder, "arl"), (residual, "ptl")]
)
def test_the_int8_layers_of_the_plugins_own_lpt(net, gpu, core):
    found = ovlpt.check(net(), "GPU", against="stock", virtual=gpu)
    assert found.numbers is None
    assert any("a virtual GPU computes none without execute=True" in note for note in found.notes)
    assert found.ok, found.differences
    assert found.settings["name"].startswith("GPU (Virtual")
    assert found.settings["virtual"] == gpu
    assert found.compared
    assert all(layer.is_low for layer in found.compared)
    assert all(layer.real_time == 0 for layer in found.layers)
    assert not any("Virtual" in core.get_property(device, "FULL_DEVICE_NAME") for device in core.available_devices)


@pytest.mark.skipif(virtual_gpu.SINCE["nvl"] > RELEASE, reason="this plugin does not know the device")
def test_a_new_device():
    assert ovlpt.check(residual(), "GPU", against="stock", virtual="nvl").ok


@pytest.mark.skipif(virtual_gpu.SINCE["nvl"] <= RELEASE, reason="this plugin knows the device")
def test_a_device_that_is_too_new():
    with pytest.raises(InputError, match=r'the virtual GPU "nvl" needs OpenVINO 2026\.4 or later, and 20'):
        ovlpt.check(residual(), "GPU", virtual="nvl")


def test_a_model_that_stock_cannot_compile(tmp_path, capsys):
    """The GPU plugin pads integers with -inf where a pool rounds its size up as PyTorch does."""
    x = parameter([1, 4, 8, 8])
    pooled = opset14.max_pool(quantized(x, 0, 2.55), [2, 2], [1, 1], [0, 0], [0, 0], [3, 3], "ceil_torch").output(0)
    path = tmp_path / "net.xml"
    openvino.save_model(model(opset1.convolution(pooled, int8_weights([4, 4, 1, 1]), *NONE), x), path)
    assert cli.main(["check", str(path), "-d", "GPU", "--virtual", "xelp", "--no-numbers"]) == 0
    said = capsys.readouterr().out
    assert "1 of 1 layers in int8" in said
    cannot = "the plugin with its own LPT cannot compile the model" in said
    if RELEASE >= (2025, 0):
        assert cannot != ("every layer as expected" in said)
    if RELEASE >= (2025, 0) and RELEASE not in ((2026, 0), (2026, 1), (2026, 2)):  # which compile it
        assert cannot


def test_a_library_is_built_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = virtual_gpu.library()
    assert built.is_relative_to(tmp_path / "ovlpt")
    assert {path.name for path in built.parent.iterdir()} == {"libOpenCL.so.1", "digest"}
    assert ctypes.CDLL(str(built)).clGetPlatformIDs(0, None, None) == 0
    made = built.stat().st_mtime_ns
    assert virtual_gpu.library().stat().st_mtime_ns == made


@pytest.mark.parametrize("content", [b"", b"someone's"])
def test_a_library_that_is_not_what_was_built_is_built_anew(tmp_path, monkeypatch, content):
    """Cut off, or another's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = virtual_gpu.library()
    built.write_bytes(content or built.read_bytes()[:1000])
    assert ctypes.CDLL(str(virtual_gpu.library())).clGetPlatformIDs(0, None, None) == 0


def test_a_library_that_others_may_write_to_is_built_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = virtual_gpu.library()
    made = built.stat().st_mtime_ns
    built.chmod(0o722)
    assert virtual_gpu.library().stat().st_mtime_ns != made
    assert built.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_write_to_is_closed_to_them(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folders = (virtual_gpu.library().parent, tmp_path / "ovlpt")
    for folder in folders:
        folder.chmod(0o777)
    virtual_gpu.library()
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o755, 0o755]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    os.chown(virtual_gpu.library().parent, 12345, -1)
    with pytest.raises(InputError, match=r"is not a folder of yours, so nothing is loaded from it; set XDG_CACHE_HOME"):
        virtual_gpu.library()


def test_a_folder_that_is_a_link(tmp_path, monkeypatch):
    """It could be turned to another's at any time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = virtual_gpu.library().parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is not a folder of yours"):
        virtual_gpu.library()


def test_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(InputError, match="needs a C compiler once, and there is none of cc, gcc and clang"):
        virtual_gpu.library()


def test_a_compiler_that_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "false")
    with pytest.raises(InputError, match="cannot build the virtual GPU: it ends with status 1 and says nothing"):
        virtual_gpu.library()
    assert not list(tmp_path.rglob("libOpenCL*"))


def test_a_compiler_that_says_why(tmp_path, monkeypatch):
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 3\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(InputError, match="cannot build the virtual GPU: no space left"):
        virtual_gpu.library()


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="set XDG_CACHE_HOME to a folder of yours"):
        virtual_gpu.library()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"device": "GPU", "virtual": "voodoo"}, 'no virtual GPU "voodoo"; there are gen9, xelp'),
        ({"device": "CPU", "virtual": "xelp"}, 'a virtual GPU needs the device "GPU", not "CPU"'),
        ({"device": "GPU", "virtual": "xelp", "count": True}, "has no times"),
        ({"device": "GPU", "virtual": "gen9"}, "computes nothing in int8"),
    ],
)
def test_what_cannot_be_asked(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        ovlpt.check(one_convolution(), **arguments)


def test_a_missing_gpu_points_to_the_virtual_ones(core):
    if "GPU" in core.available_devices:
        pytest.skip("this machine has a GPU")
    with pytest.raises(InputError, match=r'no device "GPU" on this machine; .*--virtual'):
        ovlpt.check(one_convolution(), "GPU")


def test_transform_for_a_virtual_gpu_is_that_of_its_profile(tmp_path):
    """What the command writes for a GPU that is not here, and what Python gives for its settings."""
    target = tmp_path / "out.xml"
    assert cli.main(["transform", str(data.digits()), "-d", "GPU", "--virtual", "dg2", "-o", str(target)]) == 0
    model = ovlpt.transform(data.digits(), "GPU", config=plugin_config.gpu.config(systolic=True), precision="f16")
    ovlpt.save_model(model, tmp_path / "python.xml")
    core = openvino.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin, which knows the operations
    written, expected = (
        Counter(
            (node.get_type_name(), *(value.get_element_type().get_type_name() for value in node.input_values()))
            for node in core.read_model(path).get_ops()
        )
        for path in (target, tmp_path / "python.xml")
    )
    assert written == expected
    assert ("Convolution", "u8", "i8") in written


def test_a_script_that_compiles_ends_well():
    """Its compiled model lives to the end; nodes outlived the GPU plugin, which ended the process by signal 11."""
    script = (
        "import ovlpt; from ovlpt import data; from ovlpt.device import virtual_gpu; virtual_gpu.load('xelp'); "
        "core = ovlpt.openvino_api.Core(); compiled = ovlpt.compile_model(data.digits(), 'GPU', core=core)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
