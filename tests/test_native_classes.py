"""The installed library has no low precision class that nobody here knows of."""

from __future__ import annotations

from pathlib import Path

import openvino
import pytest

from ovlpt.openvino_api import RELEASE
from tools import native_classes

LIBRARIES = Path(openvino.__file__).parent / "libs"


def test_every_class_of_the_library_has_its_place(capsys):
    assert native_classes.main([str(LIBRARIES)]) == 0
    shown = capsys.readouterr()
    assert "| ConcatTransformation |" in shown.out
    assert "0 of them" in shown.err


def test_the_plugins_that_name_a_class():
    plugins = native_classes.users(LIBRARIES, ["KVCacheConcat", "LowPrecision"])
    assert plugins["LowPrecision"][:2] == ["CPU", "GPU"]
    assert plugins["KVCacheConcat"] == (["NPU"] if RELEASE >= (2026, 0) else [])


def test_what_a_new_release_has_gained(tmp_path, capsys):
    (tmp_path / "libopenvino.so.9999").write_bytes(b"\0N2ov4pass13low_precision17AddTransformationE\0"
                                                   b"N2ov4pass13low_precision12NewerThanAllE\0")  # fmt: skip
    assert native_classes.main([str(tmp_path), "--missing"]) == 1
    shown = capsys.readouterr()
    assert "| NewerThanAll |  | nothing |" in shown.out
    assert "AddTransformation" not in shown.out


def test_no_library(tmp_path, capsys):
    assert native_classes.main([str(tmp_path)]) == 2
    assert "openvino/libs" in capsys.readouterr().err


@pytest.mark.parametrize("name", native_classes.ELSEWHERE)
def test_no_class_of_a_name_that_is_said_to_be_elsewhere(name):
    found = native_classes.here().get(name)
    assert found is None, f"{name} is at {found}, and needs no explanation"
