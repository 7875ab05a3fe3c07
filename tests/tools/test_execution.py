from __future__ import annotations

import shutil

import pytest

from ovlpt.device.compile import default_precision
from ovlpt.openvino_api import Core
from tests.networks import residual
from tests.test_cli import save
from tools import execution


def test_a_network_that_runs_as_stock_does(tmp_path, capsys):
    path = save(residual(), tmp_path / "net.xml")
    assert execution.main([path]) == 0
    rows = execution.compare(path)
    assert [found["floats"] for found in rows] == list(dict.fromkeys(("f32", default_precision(Core(), "CPU"))))
    for found in rows:
        assert found["int8_stock"] == found["int8_ovlpt"] == found["weighted"] == 3
        assert found["lost"] == []
    assert "net" in capsys.readouterr().out


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="a virtual GPU needs a C compiler")
def test_a_virtual_gpu(tmp_path, capsys):
    path = save(residual(), tmp_path / "net.xml")
    assert execution.main([path, "-d", "GPU", "--virtual", "dg2", "--precision", "f32"]) == 0
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if " net " in line)
    assert [row[at] for at in (5, 7, 9)] == ["3", "3", "3"]  # with weights, in int8 with stock, and here
