"""The library is built and loaded in processes of their own: this one never sees a GPU."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from pathlib import Path

import pytest

import ovlpt
from ovlpt.device import virtual_gpu
from ovlpt.trace import InputError
from tests.networks import encoder, one_convolution


def test_both_tables_name_the_same_devices():
    source = (Path(virtual_gpu.__file__).parent / "device.c").read_text()
    assert set(re.findall(r'^    \{"(\w+)", +"Virtual', source, re.MULTILINE)) == set(virtual_gpu.GPUS)


def test_the_source_compiles_without_warnings():
    folder = Path(virtual_gpu.__file__).parent
    command = ["cc", *virtual_gpu._FLAGS, "-Wall", "-Wextra", "-Werror", "-o", os.devnull]
    done = subprocess.run([*command, *map(str, sorted(folder.glob("*.c")))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_opencl_is_visible():
    symbols = subprocess.run(["nm", "-D", "--defined-only", virtual_gpu.library()], capture_output=True, text=True)
    names = [line.split()[-1] for line in symbols.stdout.splitlines()]
    assert len(names) > 60
    assert all(name.startswith("cl") for name in names)


@pytest.mark.parametrize(("net", "gpu"), [(one_convolution, "xelp"), (encoder, "dg2")])
def test_the_int8_layers_of_the_plugins_own_lpt(net, gpu, core):
    found = ovlpt.check(net(), "GPU", against="stock", virtual=gpu)
    assert found.ok, found.differences
    assert found.settings["name"].startswith("GPU (Virtual")
    assert found.settings["virtual"] == gpu
    assert found.compared
    assert all(layer.is_low for layer in found.compared)
    assert all(layer.real_time == 0 for layer in found.layers)
    assert not any("Virtual" in core.get_property(device, "FULL_DEVICE_NAME") for device in core.available_devices)


def test_a_library_is_built_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = virtual_gpu.library()
    assert built.is_relative_to(tmp_path / "ovlpt")
    assert [path.name for path in built.parent.iterdir()] == ["libOpenCL.so.1"]
    assert ctypes.CDLL(str(built)).clGetPlatformIDs(0, None, None) == 0
    made = built.stat().st_mtime_ns
    assert virtual_gpu.library().stat().st_mtime_ns == made


def test_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(InputError, match="needs a C compiler once, and there is none of cc, gcc and clang"):
        virtual_gpu.library()


def test_a_compiler_that_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "false")
    with pytest.raises(InputError, match="cannot build the virtual GPU"):
        virtual_gpu.library()
    assert not list(tmp_path.rglob("libOpenCL*"))


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="set XDG_CACHE_HOME to a folder of yours"):
        virtual_gpu.library()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"device": "GPU", "virtual": "voodoo"}, 'no virtual GPU "voodoo"; there are gen9, xelp'),
        ({"device": "CPU", "virtual": "xelp"}, 'a virtual GPU is no "CPU"'),
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
