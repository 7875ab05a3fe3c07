"""The times of pretrained networks: what is measured, and how it is written."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from tests.conftest import inputs_of
from tests.networks import one_convolution
from tools.ir import save_ir
from tools.real import speed

FAST, SLOW = [0.5, 0.4, 0.6, 8.0, 4.0], [1.25, 1.2, 1.3, 4.0, 5.0]


@pytest.fixture
def folder(tmp_path):
    """A network of the zoo, as far as times go: a quantized file, a float one, and a sample."""
    home = tmp_path / "zoo" / "magika"
    home.mkdir(parents=True)
    net = one_convolution()
    for name in ("default", "float"):
        save_ir(net, home / f"{name}.xml")
    (sample,) = inputs_of(net)
    with (home / "data.pickle").open("wb") as file:
        pickle.dump({"evaluation": [{net.inputs[0].get_any_name(): np.asarray(sample)}]}, file)
    return home.parent


def test_the_slowest_comes_first_and_the_default_types_milliseconds_are_shown():
    figures = {"magika/mixed": {"f32": FAST}, "magika/default": {"f32": SLOW, "default": FAST}}
    assert speed.rows(figures) == [
        ("magika", "default", "1.250 (1.200–1.300)", "0.500 (0.400–0.600)", "8.00", "4.00"),
        ("magika", "mixed", "0.500 (0.400–0.600)", "", "8.00", "4.00"),
    ]
    assert speed.means(figures) == (
        "Geometric means: all: 0.79 (f32), 0.50 (default); mixed: 0.50 (f32); default: 1.25 (f32), 0.50 (default)."
    )


def test_each_quantized_file_is_measured_once(folder, tmp_path, capsys):
    path = tmp_path / "figures.json"
    assert speed.main([str(folder), "magika", "--json", str(path), "--seconds", "0.02"]) == 0
    kept = path.read_text()
    assert set(json.loads(kept)) == {"magika/default"}
    assert all(each > 0 for each in json.loads(kept)["magika/default"]["f32"])
    assert "| magika | default |" in capsys.readouterr().out
    assert speed.main([str(folder), "magika", "--json", str(path), "--seconds", "0.02"]) == 0
    assert path.read_text() == kept


def test_only_the_quantizations_that_are_asked_for(folder, tmp_path):
    path = tmp_path / "figures.json"
    assert speed.main([str(folder), "magika", "--json", str(path), "--variants", "mixed"]) == 2
    assert not path.exists()


def test_what_cannot_be_measured_is_said(folder, tmp_path, capsys):
    (folder / "magika" / "default.bin").unlink()
    assert speed.main([str(folder), "magika", "--json", str(tmp_path / "figures.json")]) == 2
    said = capsys.readouterr().err
    assert "magika/default: " in said
    assert "python -m tools.zoo real builds it" in said
