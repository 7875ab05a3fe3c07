"""Advices that are measured, and kept or refused. Latencies are not measured here: each test says what they are."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import cli
from ovlpt.fleet.engine import Died
from ovlpt.inspect import complete as module
from ovlpt.inspect import trials
from ovlpt.inspect.advice import QuantizeInput, QuantizeWeights, Requantize, in_order, interval
from ovlpt.inspect.calibration import calibrate
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.shards import data_of
from ovlpt.openvino_api import Model, Node, opset1
from ovlpt.predicates import is_function_quantized
from ovlpt.trace import InputError
from tests.conftest import assert_documented
from tests.fleet.test_compare_on_workers import Pools
from tests.networks import const
from tools.answers import (
    IMAGE,
    convolution,
    f32,
    image,
    model,
    named,
    opset13,
    parameter,
    quantized,
    real,
    weights,
)

FASTER, SLOWER = (0.9, (0.88, 0.92)), (1.1, (1.05, 1.2))


def moderate() -> Node:
    """Weights from -64 to 64, which no CPU saturates on."""
    return weights((8, 8, 1, 1), low=-2.0, high=2.0)


def layer(data: Node, name: str) -> Node:
    return convolution(data, moderate(), name=name)


def gates() -> Model:
    """Two convolutions in float: one reads a Sigmoid, the other has float weights as well."""
    data = image()
    one = layer(named(opset1.sigmoid(data), "gate"), "one")
    other = convolution(named(opset1.tanh(data), "other_gate"), real((8, 8, 1, 1)), name="other")
    return model(one, other)


def samples(count: int = 3, shape=IMAGE) -> list[np.ndarray]:
    return [np.random.default_rng(0).uniform(0, 2.5, (count, *shape)).astype(np.float32)]


@pytest.fixture
def latencies(monkeypatch):
    """What pairs of networks are said to take; the last goes on."""

    def say(*ratios):
        left = list(ratios)
        monkeypatch.setattr(module._Measure, "ratio", lambda *_: left.pop(0) if len(left) > 1 else left[0])
        monkeypatch.setattr(module._Measure, "shares", lambda _, answers: {each.name: 0.3 for each in answers})

    return say


def fake_quantizes(graph: Model) -> list[str]:
    return [node.get_friendly_name() for node in graph.get_ordered_ops() if node.get_type_name() == "FakeQuantize"]


def test_what_pays_is_kept_in_a_quantized_model_of_its_own(core, latencies):
    latencies(FASTER)
    graph = gates()
    given = fake_quantizes(graph)
    found = ovlpt.complete(graph, samples(), max_loss=20, core=core)
    assert (found.before.in_int8, found.after.in_int8, found.after.layers) == (0, 2, 2)
    assert {layer for each in found.kept for layer in each.candidate.layers} == {"one", "other"}
    assert found.ratio == 0.9
    assert fake_quantizes(graph) == given
    assert is_function_quantized(found.model)
    assert ovlpt.explain(found.model, core=core).headline == "2 of 2 layers with weights run in int8"
    outputs = [list(core.compile_model(each, "CPU")(list(samples(1)[0])).values()) for each in (graph, found.model)]
    for mine, other in zip(*outputs, strict=True):
        np.testing.assert_allclose(mine, other, atol=0.1)
        assert np.ptp(mine) > 0.5


def test_float_weights_keep_to_half_of_the_range_where_sums_saturate(core, latencies, monkeypatch):
    latencies(FASTER)
    monkeypatch.setattr(module, "saturates", lambda *_: True)
    graph = model(convolution(image(), real((8, 8, 1, 1)), name="layer"))
    found = ovlpt.complete(graph, samples(), max_loss=20, core=core)
    (decision,) = found.kept
    assert decision.candidate.what == "weights to 255 levels on twice their range"
    quantize = next(each for each in found.model.get_ops() if each.get_friendly_name().endswith("_weights_1"))
    values, _, high, *_ = (value.get_node().data for value in quantize.input_values())
    np.testing.assert_allclose(high.ravel(), 2 * np.abs(values).max((1, 2, 3)))
    assert found.after.sqnr[0] > 35


def test_what_does_not_pay_is_refused_with_what_was_measured(core, latencies):
    latencies(SLOWER)
    lines = []
    found = ovlpt.complete(gates(), samples(), max_loss=20, core=core, progress=lines.append)
    assert not found.kept
    assert {each.why for each in found.decisions} == {"gains -10.0% (-20.0% to -5.0%)"}
    assert found.after == found.before
    assert fake_quantizes(found.model) == fake_quantizes(gates())
    assert any("refused" in line for line in lines)


def test_a_gain_that_the_interval_cannot_tell_is_none(core, latencies):
    latencies((0.95, (0.9, 1.01)))
    assert not ovlpt.complete(gates(), samples(), max_loss=20, core=core).kept


@pytest.mark.parametrize(("whole", "left"), [([SLOWER, FASTER], ["other"]), ([SLOWER, SLOWER], [])])
def test_what_is_slower_together_is_given_up_the_least_gain_first(core, latencies, whole, left):
    latencies((0.8, (0.78, 0.82)), FASTER, *whole)
    found = ovlpt.complete(gates(), samples(), max_loss=20, core=core)
    assert [layer for each in found.kept for layer in each.candidate.layers] == left
    assert found.after.in_int8 == len(left)
    assert found.ratio == (0.9 if left else 1.0)
    assert "the gain is -10.0% of the given model's latency" in found.decisions[-1].why
    assert ovlpt.explain(found.model, core=core).headline.startswith(f"{len(left)} of 2")


@pytest.mark.parametrize(("ratio", "spread", "blocks"), [(0.9, 0.01, 4), (1.1, 0.01, 4), (0.99, 0.02, 12)])
def test_blocks_are_measured_until_the_interval_leaves_out_the_gain(core, monkeypatch, ratio, spread, blocks):
    generator, measured = np.random.default_rng(0), []

    def block(*_: object, swapped: bool) -> np.ndarray:
        measured.append(swapped)
        return ratio * np.exp(generator.normal(generator.normal(0, spread), spread, 20))

    monkeypatch.setattr(module._Measure, "_block", block)
    measure = module._Measure(core, "CPU", None, gates(), data_of(samples(), gates()).shards)
    measure.ratio(None, None, lambda interval: not interval[0] <= 0.99 <= interval[1])
    assert measured == [False, True] * (blocks // 2)


def test_a_loss_that_is_too_high_is_refused_before_anything_is_timed(core, latencies):
    latencies()  # a measurement would fail
    found = ovlpt.complete(gates(), samples(), max_loss=0, core=core)
    assert [each.verdict for each in found.decisions] == [module.REFUSED] * 2
    assert all(each.loss > 0 and "more than 0" in each.why for each in found.decisions)


def test_the_float_model_is_what_the_loss_is_measured_against(core, latencies):
    latencies(FASTER)
    data = parameter()
    original = model(convolution(named(opset1.sigmoid(data), "gate"), real((8, 8, 1, 1))))
    graph = model(convolution(named(opset1.sigmoid(image()), "gate"), real((8, 8, 1, 1))))
    found = ovlpt.complete(graph, samples(), original, max_loss=20, core=core)
    assert 30 < found.after.sqnr[0] < found.before.sqnr[0] < 80
    assert found.loss == pytest.approx(found.before.sqnr[0] - found.after.sqnr[0])
    with pytest.raises(InputError, match="another network"):
        ovlpt.complete(graph, samples(), gates(), core=core)


def test_a_kind_that_is_refused_is_tried_again_by_halves(core, latencies):
    latencies(SLOWER, FASTER, SLOWER, FASTER)
    data = image()
    layers = [layer(named(opset1.sigmoid(data), f"gate_{at}"), f"layer_{at}") for at in range(2)]
    found = ovlpt.complete(model(*layers), samples(), max_loss=20, core=core)
    assert sorted(each.verdict for each in found.decisions) == [module.HALVED, module.KEPT, module.REFUSED]
    assert (found.before.in_int8, found.after.in_int8) == (0, 1)


def test_layers_that_take_little_time_and_a_time_that_is_over(core, latencies, monkeypatch):
    latencies()
    found = ovlpt.complete(gates(), samples(), core=core, seconds=0)
    assert {each.why for each in found.decisions} == {"the time was over"}
    monkeypatch.setattr(module._Measure, "shares", lambda _, answers: {each.name: 0.002 for each in answers})
    found = ovlpt.complete(gates(), samples(), core=core)
    assert {each.why for each in found.decisions} == {"its layers take 0.2% of the time, less than the 1% to be gained"}


@pytest.mark.parametrize("alone", [0.006, 0.3])
def test_what_brings_too_little_by_itself_is_tried_together(core, latencies, monkeypatch, alone):
    latencies(*[(0.995, (0.99, 1.0))] * (2 if alone == 0.3 else 0), FASTER)
    monkeypatch.setattr(module._Measure, "shares", lambda _, answers: {each.name: alone for each in answers})
    found = ovlpt.complete(gates(), samples(), max_loss=20, core=core)
    assert [each.verdict for each in found.decisions] == [module.KEPT, module.JOINED, module.JOINED]
    assert found.kept[0].candidate.layers == ("other", "one")
    assert found.after.in_int8 == 2


def test_weights_that_other_operations_lay_out_are_quantized(core):
    kernel = opset1.transpose(opset1.squeeze(opset1.unsqueeze(moderate(), [0]), [0]), [1, 0, 2, 3])
    graph = model(convolution(image(), kernel, name="layer"))
    original = simulate(graph, core)(samples()[0][0])[0]
    QuantizeWeights("Convolution", "layer").apply(graph, {})
    np.testing.assert_allclose(simulate(graph, core)(samples()[0][0])[0], original, atol=0.05)
    assert len(fake_quantizes(graph)) == 2


def test_shares_of_the_time_are_those_of_the_layers(core):
    graph, shape = gates(), (1, 8, 256, 256)  # layers of more than the microseconds that counters count in
    graph.reshape(list(shape))
    measure = module._Measure(core, "CPU", None, graph, data_of(samples(shape=shape), graph).shards)
    answers = [each for each in ovlpt.explain(graph, core=core) if each.advices]
    shares = measure.shares(answers)
    assert set(shares) == {"one", "other"}
    assert all(0 < share < 1 for share in shares.values())


def test_both_inputs_of_a_product_are_one_group(core, latencies):
    latencies(FASTER)
    left, right = (named(opset1.sigmoid(parameter((1, 8, 16), name)), f"{name}_gate") for name in "ab")
    product = named(opset1.matmul(left, right, False, True))
    other = layer(image(), "int8")
    # Ones beside zeros: CPUs without VNNI add two products in 16 bits.
    values = np.full((2, 1, 8, 16), -100, np.float32)
    values[..., 0] = 1
    arrays = [values, values, samples(2)[0]]
    (decision,) = ovlpt.complete(model(product, other), arrays, max_loss=20, core=core).decisions
    assert decision.verdict == module.KEPT
    assert [advice.port for advice in decision.candidate.advices] == [0, 1]


def test_a_quantization_that_an_activation_function_loses_is_moved_past_it(core, latencies):
    latencies(FASTER)
    first = quantized(layer(image(), "first"), -2.0, 2.0, name="lost")
    activated = named(opset1.prelu(first, f32(np.full(8, 0.1))), "activated")
    found = ovlpt.complete(model(layer(activated, "layer")), samples(), max_loss=20, core=core)
    assert "lost" not in fake_quantizes(found.model)
    assert found.after.in_int8 == 2
    assert found.loss < 3


def test_readers_of_one_value_share_a_fake_quantize(core, latencies):
    latencies(FASTER)
    gate = named(opset1.sigmoid(image()), "gate")
    graph = model(layer(gate, "one"), layer(gate, "other"))
    found = ovlpt.complete(graph, samples(), max_loss=20, core=core)
    assert len([name for name in fake_quantizes(found.model) if "/FakeQuantize_" in name]) == 1
    assert found.after.in_int8 == 2


def attention(positions: int, **attributes) -> Model:
    """Of which only the query and the key are quantized."""
    query, key, value = (parameter((1, 2, positions, 16), name) for name in "qkv")
    inputs = [quantized(each, -1.28, 1.27, name=f"quantized_{at}") for at, each in enumerate((query, key))]
    mask, scale = (f32(0.0), f32(0.01)) if attributes.pop("scale", False) else (None, None)
    more = [] if mask is None else [mask, scale]
    return model(named(opset13.scaled_dot_product_attention(*inputs, value, *more, causal=False, **attributes)))


@pytest.mark.parametrize("scale", [False, True])
def test_diffuse_attention_keeps_its_probabilities(core, scale):
    """512 positions of nearly the same probability: on a grid of 1/255 each would be zero."""
    graph = attention(512, scale=scale)
    generator = np.random.default_rng(0)
    arrays = [generator.uniform(-0.1, 0.1, (1, 2, 512, 16)).astype(np.float32) for _ in "qk"]
    # In the middle of the interval around zero: integers of at most 63, which no CPU saturates on.
    arrays.append(generator.uniform(0.1, 0.45, (1, 2, 512, 16)).astype(np.float32))
    widest = [*arrays[:2], np.ones_like(arrays[2])]
    (answer,) = ovlpt.explain(graph, core=core).quantizable
    advices = in_order(answer.advices)
    assert [type(each).__name__ for each in advices] == ["QuantizeInput", "QuantizeProbabilities"]
    ranges = calibrate(graph, advices, [arrays, widest], core)
    assert ranges["layer/Softmax"][1] < 0.01
    expected = core.compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(arrays)[0]
    for advice in advices:
        advice.apply(graph, ranges)
    found = ovlpt.compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core)(arrays)[0]
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert ovlpt.explain(graph, core=core).headline == "2 of 2 layers with weights run in int8"


def test_a_quantile_where_it_makes_the_error_smaller(core):
    graph = model(convolution(named(opset1.multiply(parameter(), const([1.0])), "gate"), name="layer"))
    advice = QuantizeInput("Convolution", "layer", 0, "Multiply gate")
    many = samples(1000)[0]
    many[0, 0, 0, 0, 0] = 8.0  # one of half a million
    sets = [[values] for values in many]
    assert calibrate(graph, [advice], sets, core)["gate"][1] == pytest.approx(8.0)
    assert calibrate(graph, [advice], sets, core, module.QUANTILES)["gate"][1] < 2.6
    assert calibrate(graph, [advice], sets[:1], core, module.QUANTILES)["gate"][1] == pytest.approx(8.0)


@pytest.mark.parametrize("ends", [(-0.28, 6.0), (-5.0, -1.0), (-1e-3, 4.0), (-3.0, 3.0), (-7.0, 0.0)])
def test_an_interval_with_a_zero_point_holds_the_range_and_zero(ends):
    low, high = interval(*ends, zero_point=True)
    zero = -low / (high - low) * 255
    assert zero == pytest.approx(round(zero), abs=1e-9)
    step = (high - low) / 255
    assert low <= ends[0] + step / 2
    assert high >= max(ends[1], 0) - step / 2


def test_of_two_intervals_for_one_fake_quantize_that_around_zero_is_taken():
    wide, signed = Requantize("fq", False), Requantize("fq", True)
    assert in_order([wide, signed, wide]) == [signed]
    assert in_order([wide]) == [wide]


def save(graph: Model, path) -> str:
    openvino.save_model(graph, str(path), compress_to_fp16=False)
    return str(path)


def test_the_command(tmp_path, capsys, latencies):
    latencies(FASTER)
    path, out, found = save(gates(), tmp_path / "net.xml"), tmp_path / "out.xml", tmp_path / "found.json"
    np.savez(tmp_path / "data.npz", x=samples()[0], labels=np.zeros(3 * 64, np.int64))
    given = ["complete", path, "-i", str(tmp_path / "data.npz"), "-o", str(out), "--max-loss", "20"]
    assert cli.main([*given, "--json", str(found)]) == 0
    printed = capsys.readouterr()
    assert "layers with weights in int8: 0 of 2 before, 2 of 2 after" in printed.out
    assert "trying Convolution one" in printed.err
    written = json.loads(found.read_text())
    assert_documented(written)
    content = written["result"]
    assert [each["verdict"] for each in content["decisions"]] == ["kept", "kept"]
    assert content["after"]["in_int8"] == 2
    assert ovlpt.explain(out).headline == "2 of 2 layers with weights run in int8"


class Pickling(ThreadPoolExecutor):
    """As processes are: what is sent is pickled."""

    def submit(self, function, /, *arguments):
        function, arguments = pickle.loads(pickle.dumps((function, arguments)))
        return super().submit(lambda: pickle.loads(pickle.dumps(function(*arguments))))


class Never(ThreadPoolExecutor):
    def submit(self, *_: object):
        raise AssertionError("a trial is computed again")


def test_workers_and_a_journal_change_nothing(tmp_path, latencies, monkeypatch):
    latencies(FASTER)
    path, journal = save(gates(), tmp_path / "net.xml"), tmp_path / "journal"
    (tmp_path / "data").mkdir()
    for number in range(3):
        images = np.random.default_rng(number).uniform(0, 2.5, (2, *IMAGE)).astype(np.float32)
        np.savez(tmp_path / "data" / f"{number}.npz", x=images, labels=np.zeros(2 * 64, np.int64))
    monkeypatch.setattr("ovlpt.inspect.shards._FILES", 1)
    given = {"model": path, "inputs": tmp_path / "data", "max_loss": 20, "threads": 1}
    alone = ovlpt.complete(**given)
    found = ovlpt.complete(**given, executor=lambda: Pickling(2), resume=journal)
    assert [each.verdict for each in alone.decisions] == [module.KEPT] * 2
    assert alone.before.accuracy is not None
    assert found.to_json() == alone.to_json()
    monkeypatch.setattr(module._Measure, "ratio", None)
    assert ovlpt.complete(**given, executor=lambda: Never(1), resume=journal).to_json() == alone.to_json()
    with pytest.raises(InputError, match="model differ"):
        ovlpt.complete(**{**given, "model": gates()}, resume=journal)


def test_a_killed_process_changes_nothing(tmp_path, latencies):
    latencies(FASTER)
    given = {"model": save(gates(), tmp_path / "net.xml"), "inputs": samples(), "max_loss": 20, "threads": 1}
    pools, killed = Pools(), []

    def progress(line: str) -> None:
        if not killed and pools.started:
            killed.append(line)
            pools.kill_one()

    alone = ovlpt.complete(**given)
    found = ovlpt.complete(**given, executor=pools, progress=progress)
    assert len(pools.made) == 2
    assert found.to_json() == alone.to_json()


def test_a_trial_that_no_worker_survives_is_refused(core, latencies, monkeypatch):
    latencies(FASTER)
    real = trials.answers

    def second_dies(tasks, *rest):
        for task, plain in real(tasks, *rest):
            yield task, Died(f"{task.label} ended its worker process") if task.arguments[0].advices else plain

    monkeypatch.setattr(trials, "answers", second_dies)
    found = ovlpt.complete(gates(), samples(), max_loss=20, core=core)
    assert {each.why for each in found.decisions} == {"a trial on the data ended its worker process"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"-o": "net.xml"}, "is a file of the input"),
        ({"-o": "out.onnx"}, "give the path of an .xml"),
        ({"-i": "nowhere.npz"}, "no file"),
        ({"--max-loss": "-1"}, "number of at least 0"),
    ],
)
def test_unusable_input_leaves_nothing(changes, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(gates(), "net.xml")
    np.savez("data.npz", x=samples()[0])
    given = {"-i": "data.npz", "-o": "out.xml", **changes}
    assert cli.main(["complete", "net.xml", *(part for pair in given.items() for part in pair)]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out.xml").exists()


def test_weights_of_an_operation_that_nothing_helps_are_named(core, latencies):
    latencies(FASTER)
    kernel = weights((8, 8, 4, 4), axis=1)
    strided = opset1.convolution_backprop_data(image(), kernel, [4, 4], pads_begin=[0, 0], pads_end=[0, 0])
    found = ovlpt.complete(model(named(strided)), samples(), core=core)
    (answer,) = found.unadvised
    assert "stride is 4" in answer.why
    assert not found.decisions
