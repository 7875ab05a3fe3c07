"""Data files: one array per input, samples along the first axis, labels."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.inspect.inputs import load_inputs, load_samples, open_sizes, random_inputs, typical_inputs
from ovlpt.openvino_api import PartialShape, opset1, opset6
from ovlpt.trace import InputError
from tests.graphs import opset4
from tests.networks import const, model, parameter

PIXELS = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)


def network(*shapes):
    parameters = [parameter(shape, name=name) for shape, name in zip(shapes, "xy", strict=False)]
    return model(opset1.concat([opset1.reshape(p, np.array([-1]), False) for p in parameters], 0), parameters)


def save(path, **arrays):
    np.savez(path / "data.npz", **arrays)
    return path / "data.npz"


def test_one_sample_of_the_inputs_shape(tmp_path):
    samples, labels = load_samples(save(tmp_path, x=PIXELS), network((2, 3, 4)))
    assert [[array.shape for array in sample] for sample in samples] == [[(2, 3, 4)]]
    assert labels is None


@pytest.mark.parametrize(
    ("shape", "count"),
    [((1, 3, 4), 2), ((2, 3, 4), 1), ((3, 4), 2)],  # a batch of one, of two, and an axis more than the input
)
def test_samples_along_the_first_axis(tmp_path, shape, count):
    samples, labels = load_samples(save(tmp_path, x=PIXELS, labels=np.array([4, 7])), network(shape))
    assert len(samples) == count
    assert {sample[0].shape for sample in samples} == {shape}
    assert (np.concatenate([sample[0].reshape(-1) for sample in samples]) == PIXELS.reshape(-1)).all()
    assert labels.tolist() == [4, 7]


def test_two_inputs_by_their_names(tmp_path):
    file = save(tmp_path, y=np.zeros((2, 5)), x=PIXELS)
    samples, _ = load_samples(file, network((1, 3, 4), (1, 5)))
    assert [[array.shape for array in sample] for sample in samples] == [[(1, 3, 4), (1, 5)]] * 2
    assert samples[0][1].dtype == np.float32


def test_an_npy_for_one_input(tmp_path):
    np.save(tmp_path / "data.npy", PIXELS)
    (array,) = load_inputs(tmp_path / "data.npy", network((2, 3, 4)))
    assert (array == PIXELS).all()


def test_labels_are_no_input(tmp_path):
    (array,) = load_inputs(save(tmp_path, x=PIXELS, labels=np.array([1, 2])), network((2, 3, 4)))
    assert array.shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": PIXELS, "y": np.zeros((3, 5))}, "different numbers of samples, {'x': 2, 'y': 3}"),
        ({"x": PIXELS, "y": np.zeros((2, 5)), "labels": np.arange(3)}, "has 3 labels for 2 samples"),
        ({"x": PIXELS}, 'has no array for input "y"; it has x'),
        (
            {"x": PIXELS[:, :2], "y": np.zeros((2, 5))},
            r'input "x" takes the shape \[1,3,4\], its array has \[2, 2, 4\]',
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(tmp_path, arrays, sentence):
    with pytest.raises(InputError, match=sentence):
        load_samples(save(tmp_path, **arrays), network((1, 3, 4), (1, 5)))


def test_too_few_arrays():
    with pytest.raises(InputError, match="the model has 2 inputs, and 1 arrays are given"):
        load_samples([PIXELS], network((2, 3, 4), (1, 5)))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"text"])
def test_a_file_that_is_no_array(tmp_path, content):
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"is not an \.npz or \.npy file of arrays"):
        load_inputs(tmp_path / "data.npz", network((1, 3, 4)))


def test_random_data_for_open_sizes():
    """Of a size that pools and windows have room in."""
    x = parameter((1, 3, 5, 7))
    net = model(opset1.relu(x), x)
    net.reshape(PartialShape([-1, 3, -1, (2, 40)]))
    assert [array.shape for array in random_inputs(net)] == [(1, 3, 64, 40)]


@pytest.mark.parametrize("most, side", [(200, 128), (40, 64), (10**7, 64)])
def test_a_detector_that_picks_more_boxes_than_small_pictures_have(most, side):
    """A pretrained YOLO of open sizes ended `report` and `check` with "TopK: K (300) exceeds the axis dimension"."""
    pictures = parameter([-1, 3, -1, -1])
    boxes = opset1.avg_pool(pictures, [8, 8], [0, 0], [0, 0], [8, 8], True)
    best = opset6.topk(opset1.reshape(boxes, const([0, 3, -1], "i64"), True), const(most, "i64"), 2, "max", "value")
    net = model(opset1.relu(best.output(0)), pictures)
    assert random_inputs(net)[0].shape == typical_inputs(net)[0].shape == (1, 3, side, side)
    assert open_sizes(net) == [(1, side), (1, 1), (2, side), (2, 1)]


@pytest.mark.parametrize("window, side", [(7, 224), (60, 240), (1000, 16000)])
def test_a_length_that_windows_divide(window, side):
    x = parameter([-1, -1, 8])
    net = model(opset1.relu(opset1.reshape(x, const([0, -1, window, 8], "i64"), True)), x)
    assert random_inputs(net)[0].shape == (1, side, 8)


def test_states_of_a_recurrent_layer_have_the_batch_second():
    """A pretrained voice filter of [3,?,512] ended `report` with "Dimension `batch_size` is not matched between inputs"."""
    x, h, c = parameter([-1, 6]), parameter([1, -1, 4], name="h"), parameter([1, -1, 4], name="c")
    states = [opset1.squeeze(state, const([0], "i64")) for state in (h, c)]
    weights = [const(np.ones(shape, np.float32)) for shape in ((16, 6), (16, 4), (16,))]
    cell = opset4.lstm_cell(x, *states, *weights, 4)
    net = model([opset1.relu(cell.output(0)), opset1.relu(cell.output(1))], [x, h, c])
    assert open_sizes(net) == [(1, 64), (2, 64)]
    assert [array.shape for array in random_inputs(net)] == [(1, 6), (1, 1, 4), (1, 1, 4)]
    assert [array.shape for array in typical_inputs(net, 2)] == [(2, 6), (1, 2, 4), (1, 2, 4)]


def test_a_sequence_before_its_batch():
    x, y = parameter([-1, -1, 4]), parameter([-1, 4], name="y")
    total = opset1.reduce_sum(x, const([0], "i64"), False)
    net = model(opset1.add(total, y), [x, y])
    assert [array.shape for array in random_inputs(net, 0, 2, 8)] == [(8, 2, 4), (2, 4)]
