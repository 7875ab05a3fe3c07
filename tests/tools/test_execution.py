from __future__ import annotations

from tests.networks import residual
from tests.test_cli import save
from tools import execution


def test_a_network_that_runs_as_stock_does(tmp_path, capsys):
    path = save(residual(), tmp_path / "net.xml")
    assert execution.main([path]) == 0
    found = execution.compare(path)
    assert found["int8_stock"] == found["int8_ovlpt"] == found["weighted"] == 3
    assert found["lost"] == []
    assert "net" in capsys.readouterr().out
