"""The bundled model does what its docstrings say, on the installed OpenVINO."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from ovlpt import data


@pytest.fixture(scope="module")
def heldout() -> tuple[np.ndarray, np.ndarray]:
    return data.heldout()


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return ov.Core()


def predictions(core: ov.Core, path: Path, images: np.ndarray) -> np.ndarray:
    """The label [N] of every image, given one at a time."""
    compiled = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return np.array([compiled(image[None])[0].argmax() for image in images])


def test_heldout_images_are_enough_and_cover_every_digit(heldout):
    images, labels = heldout
    assert images.shape == (500, 1, 32, 32)
    assert images.dtype == np.float32
    assert (images.min(), images.max()) == (0, 1)
    assert labels.shape == (500,)
    assert labels.dtype == np.int64
    assert set(labels) == set(range(10))


def test_quantized_network_is_as_accurate_as_the_float_one(core, heldout):
    images, labels = heldout
    original = np.mean(predictions(core, data.digits_float(), images) == labels)
    quantized = np.mean(predictions(core, data.digits(), images) == labels)
    assert original >= 0.97
    assert abs(original - quantized) <= 0.01


@pytest.mark.parametrize("path", [data.digits(), data.digits_float()], ids=lambda path: path.stem)
def test_interface_is_the_documented_one(core, path):
    model = core.read_model(path)
    assert [(value.any_name, list(value.shape)) for value in model.inputs] == [("image", [1, 1, 32, 32])]
    assert [(value.any_name, list(value.shape)) for value in model.outputs] == [("logits", [1, 10])]


def test_quantized_network_has_what_the_transformations_need(core):
    nodes = core.read_model(data.digits()).get_ops()
    kinds = {node.get_type_name() for node in nodes}
    assert {"Convolution", "GroupConvolution", "MatMul", "MaxPool", "ReduceMean", "Add", "Relu"} <= kinds
    quantizations = [node for node in nodes if node.get_type_name() == "FakeQuantize"]
    lowest = [node.input_value(1).get_node().data.min() for node in quantizations]
    assert any(low == 0 for low in lowest), "no unsigned activation"
    highest = [node.input_value(2).get_node().data.max() for node in quantizations]
    assert any(low < 0 and -low / high < 0.9 for low, high in zip(lowest, highest, strict=True)), "no zero point"
    assert any(node.input_value(1).get_node().data.size > 1 for node in quantizations), "no scale per channel"
    constants = [node for node in nodes if node.get_type_name() == "Constant"]
    weights = [node for node in constants if node.get_element_type() == ov.Type.i8]
    assert len(weights) == 11


def test_bundle_is_small_and_says_nothing_about_the_machine_it_was_made_on():
    files = [file for file in data.FOLDER.iterdir() if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 600_000
    for path in (data.digits(), data.digits_float()):
        assert not re.search(r"/(home|root|tmp|work|Users)/|[A-Z]:\\", path.read_text("utf-8"))
