from __future__ import annotations

import json

import numpy as np
import openvino
import pytest

from ovlpt import cli, data
from ovlpt.device import compile_quantized, execution_types, saturates, transform
from ovlpt.inspect import verify as module
from ovlpt.inspect.verify import EQUAL, NEAR, TIES, WRONG, compare, exact_result, verify
from ovlpt.interpreter import Interpreter
from ovlpt.openvino_api import Constant, opset1
from ovlpt.trace import InputError
from tests import networks
from tests.conftest import EXACT, TRUTH, inputs_of
from tests.inspect.faults import break_lowering, pointwise


def with_one_weight_changed(source, index: int):
    """A copy whose ``index``-th tensor of i8 weights has its first number off by one."""
    changed = source.clone()
    stored = [node for node in changed.get_ordered_ops() if isinstance(node, Constant) and node.data.dtype == np.int8]
    values = stored[index].data.copy()
    values.flat[0] += 1 if values.flat[0] < 127 else -1
    replacement = Constant(values)
    for target in stored[index].output(0).get_target_inputs():
        target.replace_source_output(replacement.output(0))
    return changed


def test_every_layer_of_the_digits_network(core):
    images, _ = data.heldout()
    *records, whole = verify(data.digits(), [images[:1]], core=core)
    assert (whole.type, whole.total) == ("Result", 20)  # in two forms
    assert whole.status in (EQUAL, NEAR)
    assert len(records) == 11
    assert {record.status for record in records} <= {EQUAL, TIES, NEAR}
    assert sum(record.mismatches for record in records) <= 4  # in two forms
    assert sum(record.total for record in records) > 340_000
    assert records[-1].type in ("MatMul", "Convolution")  # by what is faster on this CPU


@pytest.mark.parametrize("index", [0, 4, 10])
def test_one_weight_off_by_one_is_caught_and_its_layer_named(index, core):
    source = core.read_model(data.digits())
    changed = with_one_weight_changed(source, index)
    images, _ = data.heldout()
    records = verify(source, [images[:1]], core=core, against=changed)
    weights = {}
    for model in (source, changed):
        for layer in Interpreter(transform(model, lowered=False, core=core), [images[:1]]).layers:
            weights.setdefault(layer.name, []).append(layer.node.input_value(1).get_node().data)
    (name,) = [name for name, (a, b) in weights.items() if (a != b).any()]
    assert [record.name for record in records if record.status == WRONG] == [name]


@pytest.mark.parametrize("make", [networks.residual, networks.shared_zero_point, networks.encoder])
def test_small_networks(make, core):
    records = verify(make(), core=core)
    assert len(records) >= 2
    assert {record.status for record in records} <= {EQUAL, TIES, NEAR}


def transposed_groups():
    x = networks.parameter([1, 16, 8, 8])
    kernel = networks.int8_weights([4, 4, 8, 2, 2], axis=2)
    node = opset1.group_convolution_backprop_data(networks.quantized(x, 0, 2.55), kernel, [2, 2])
    return networks.model(networks.convolution(networks.quantized(node, -4, 4), 8), x)


def test_a_transposed_convolution_of_groups(core):
    records = verify(transposed_groups(), core=core)
    assert [record.type for record in records] == ["GroupConvolutionBackpropData", "Convolution", "Result"]
    assert {record.status for record in records} <= {EQUAL, TIES, NEAR}


def with_function():
    x = networks.parameter([1, 16, 8, 8])
    first = networks.convolution(networks.quantized(x, -1, 1.55), 16, bias=True)
    return networks.model(networks.convolution(networks.quantized(opset1.sigmoid(first), 0, 1), 8, seed=1), x)


def test_a_function_after_a_layer(core):
    records = verify(with_function(), core=core)
    assert [record.status in (EQUAL, TIES, NEAR) for record in records] == [True, True, True]


def test_the_bound_of_a_function_is_that_of_its_result(core):
    x = networks.parameter([1, 16, 8, 8])
    node = opset1.sigmoid(networks.convolution(networks.quantized(x, 0, 2.55), 8))
    net = networks.model(node, x)
    interpreter = Interpreter(transform(net, lowered=False, core=core), [np.zeros((1, 16, 8, 8), np.float32)])
    layer, integers = next(interpreter.run())
    exact, error = exact_result(layer, integers)
    assert (exact == 0.5).all()
    assert (error > 1e-7).all()


def test_the_layers_cut_out_run_in_int8(core, monkeypatch):
    compiled = []

    class Recording:
        def __getattr__(self, name):
            return getattr(core, name)

        def compile_model(self, *arguments):
            compiled.append(core.compile_model(*arguments))
            return compiled[-1]

    recording = Recording()
    saturates(recording)
    compiled.clear()
    verify(networks.residual(), core=recording, layers=3)
    assert len(compiled) == 6  # in memory and saved
    for each in compiled:
        integers = [np.zeros(port.shape, np.uint8) for port in each.inputs]
        layers = execution_types(each, integers).executed
        assert [layer.is_int8 for layer in layers if layer.layer_type == "Convolution"] == [True]


def test_an_error_that_both_sides_share_is_found(one_layer):
    layer, integers, mine = one_layer
    inside = np.argwhere((mine > np.iinfo(mine.dtype).min) & (mine < np.iinfo(mine.dtype).max))
    both = moved(mine, tuple(inside[0]), 1)
    assert compare(layer, integers, both, both) == (1, WRONG)


@pytest.fixture(scope="module")
def one_layer(core):
    """A layer that ends in a FakeQuantize, its accumulator and its result."""
    x = networks.parameter([1, 16, 8, 8])
    first = networks.quantized(networks.convolution(networks.quantized(x, 0, 2.55), 16, bias=True), -4, 4)
    net = networks.model(networks.convolution(first, 8), x)
    interpreter = Interpreter(transform(net, lowered=False, core=core), inputs_of(net))
    layer, integers = next(interpreter.run())
    return layer, integers, interpreter.value(layer.end.output(0))


def test_equal_is_equal(one_layer):
    layer, integers, mine = one_layer
    assert compare(layer, integers, mine, mine.copy()) == (0, EQUAL)


def moved(mine, at, by):
    other = mine.astype(int)
    other[at] += by
    return other.clip(np.iinfo(mine.dtype).min, np.iinfo(mine.dtype).max).astype(mine.dtype)


def test_a_level_that_moved_is_a_tie_only_next_to_one(one_layer, monkeypatch):
    layer, integers, mine = one_layer
    exact, error = exact_result(layer, integers)
    info = np.iinfo(mine.dtype)
    inside = (mine > info.min) & (mine < info.max)
    at = tuple(np.argwhere(inside & (np.abs(exact % 1 - 0.25) < 0.1))[0])
    for by in (1, -1, 2):
        assert compare(layer, integers, mine, moved(mine, at, by)) == (1, WRONG)
    # the same element, were its exact result half a level higher
    exact = exact.copy()
    exact[at] = np.floor(exact[at]) + 0.5 + error[at] / 2
    monkeypatch.setattr(module, "exact_result", lambda *_: (exact, error))
    assert compare(layer, integers, mine, moved(mine, at, 1)) == (1, TIES)
    assert compare(layer, integers, mine, moved(mine, at, -1)) == (1, WRONG)
    assert compare(layer, integers, mine, moved(mine, at, 2)) == (1, WRONG)


def test_the_bound_is_far_below_a_level(one_layer):
    layer, integers, _ = one_layer
    _, error = exact_result(layer, integers)
    assert 0 < error.max() < 1e-3


def test_a_real_result_is_held_to_float32(core):
    net = networks.one_convolution()
    interpreter = Interpreter(transform(net, lowered=False, core=core), inputs_of(net))
    layer, integers = next(interpreter.run())
    mine = interpreter.value(layer.end.output(0))
    assert compare(layer, integers, mine, np.nextafter(mine, np.inf)) == (0, EQUAL)
    at = np.unravel_index(np.abs(mine).argmax(), mine.shape)
    other = mine.copy()
    other[at] *= 1.0001
    assert compare(layer, integers, mine, other) == (1, WRONG)
    other[at] = np.nan
    assert compare(layer, integers, mine, other) == (1, WRONG)


def test_only_the_first_layers(core):
    assert len(verify(networks.residual(), core=core, layers=2)) == 2


def test_another_network_is_refused(core):
    with pytest.raises(InputError, match="has no int8 layer"):
        verify(networks.residual(), core=core, against=networks.one_convolution())


def test_the_command(tmp_path, capsys, core):
    source = networks.residual()
    paths = [str(tmp_path / name) for name in ("net.xml", "changed.xml", "in.npz", "out.json")]
    openvino.save_model(source, paths[0], compress_to_fp16=False)
    openvino.save_model(with_one_weight_changed(source, 1), paths[1], compress_to_fp16=False)
    np.savez(paths[2], x=inputs_of(source)[0])
    assert cli.main(["verify", paths[0], "-i", paths[2], "--json", paths[3]]) == 0
    records = json.loads((tmp_path / "out.json").read_text())["result"]["records"]
    assert [record["type"] for record in records] == ["Convolution"] * 3 + ["Result"]
    assert set(records[0]) == {"name", "type", "status", "mismatches", "total"}
    capsys.readouterr()
    assert cli.main(["verify", paths[0], "-i", paths[2], "--against", paths[1]]) == 1
    assert f"the first wrong layer: {records[1]['name']}" in capsys.readouterr().out
    assert cli.main(["verify", paths[0], "--layers", "0"]) == 2
    assert "give a number of at least 1" in capsys.readouterr().err
    assert cli.main(["verify", paths[0], "--method", "tensorrt"]) == 2


@pytest.mark.parametrize("size", [2, 6])
def test_what_is_wrong_with_open_sizes_only(size, core, monkeypatch):
    """Layers cut out with the sizes of the inputs are lowered in another way, and were equal all of them."""
    net, fixed = pointwise([-1, 16, -1, -1]), pointwise([1, 16, size, size])
    values = [np.random.default_rng(0).uniform(-1, 1.5, (1, 16, size, size)).astype(np.float32)]
    assert WRONG not in {record.status for record in verify(net, values, core=core)}
    break_lowering(monkeypatch, lambda node, _: node.get_output_partial_shape(0).is_dynamic)
    statuses = [record.status for record in verify(net, values, core=core)]
    assert statuses[0] == statuses[-1] == WRONG
    assert WRONG not in {record.status for record in verify(fixed, values, core=core)}


@pytest.mark.parametrize("serializable", [True, False])
def test_what_is_wrong_in_one_form_only(serializable, core, monkeypatch):
    break_lowering(monkeypatch, lambda _, lowering: lowering.serializable is serializable)
    statuses = [record.status for record in verify(pointwise([1, 16, 4, 4]), core=core)]
    assert statuses[0] == statuses[-1] == WRONG


def test_what_is_wrong_at_one_size_only(core, monkeypatch):
    """Sizes that are open are run at 1, too."""
    break_lowering(monkeypatch, lambda *_: True, only_at_one_pixel=True)
    assert WRONG in {record.status for record in verify(pointwise([1, 16, -1, -1]), core=core)}


@pytest.mark.parametrize("sizes", [[-1, 16, 1, 1], [-1, 16, -1, -1], [1, 16, 1, 1]])
def test_a_shift_by_channel_before_an_interval_over_a_single_pixel(sizes, core):
    """The plugin took it for another on CPUs with VNNI, with an open batch of 1. Whatever it does, this says so."""
    net = pointwise(sizes, bias=True)
    values = [np.random.default_rng(0).uniform(-1, 1.5, (1, 16, 1, 1)).astype(np.float32)]
    expected, stock, found = (
        np.array(compiled(values)[0])
        for compiled in (
            core.compile_model(net, "CPU", TRUTH),
            core.compile_model(net, "CPU", EXACT),
            compile_quantized(net, "CPU", EXACT, core=core),
        )
    )
    off, off_with_stock = (np.abs(values - expected).max() / np.abs(expected).max() for values in (found, stock))
    statuses = [record.status for record in verify(net, values, core=core)]
    assert (WRONG in statuses) == (off > max(0.05, 2 * off_with_stock))
