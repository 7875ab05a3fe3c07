"""What notebooks show of results."""

from __future__ import annotations

import sys

import pytest

import ovlpt
from ovlpt import data
from ovlpt.display import html_table
from ovlpt.openvino_api import opset1
from ovlpt.trace import InputError
from tests.restricted_networks import image, model


def test_a_table():
    shown = html_table(("name", "times"), [("<b>", 3), ("x", 0.5)], "two & more", most=1)
    assert "&lt;b&gt;" in shown
    assert "two &amp; more" in shown
    assert "… and 1 more" in shown
    assert "0.500" not in shown


def results(core):
    trace = ovlpt.Trace()
    layers = ovlpt.execution_types(ovlpt.compile_model(data.digits(), core=core, trace=trace))
    return {"trace": trace, "layers": layers, "explanation": ovlpt.explain(model(opset1.sigmoid(image())), core=core)}


@pytest.mark.parametrize(
    "name, words",
    [("trace", "ConvolutionTransformation"), ("layers", "layers ran in int8"), ("explanation", "not linear")],
)
def test_what_a_notebook_shows(name, words, core):
    result = results(core)[name]
    assert words in result._repr_html_()
    assert result.summary()


@pytest.mark.parametrize("name", ["trace", "layers", "explanation"])
def test_frames(name, core):
    pytest.importorskip("pandas", reason="pandas is not installed: there are no frames")
    result = results(core)[name]
    assert len(result.to_frame()) == len(result)


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        ovlpt.Trace().to_frame()


def test_the_summary_of_an_explanation(core):
    found = results(core)["explanation"]
    assert found.summary() == {"FakeQuantize": (1, 0), "Sigmoid": (1, 0)}
