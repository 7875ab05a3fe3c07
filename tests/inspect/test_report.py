"""The report: its verdict and first bottleneck are the true ones, and its page and files hold the same facts."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from openvino import save_model

import ovlpt
from ovlpt import cli, data
from ovlpt.device.execution_types import ExecutionTypes, LayerExecution, execution_types
from ovlpt.graph.text import to_text
from ovlpt.inspect.report import facts, report
from ovlpt.inspect.report.borders import float_islands
from ovlpt.inspect.report.causes import Bottleneck, Facts, verdict
from ovlpt.inspect.report.charts import PLOT_WIDTH, scatter
from ovlpt.inspect.report.layers import Kind, Layer
from ovlpt.inspect.report.multiply_accumulates import multiply_accumulates
from ovlpt.inspect.report.overhead import Latencies
from ovlpt.inspect.report.page import to_html
from ovlpt.inspect.report.picture import HEIGHT, WIDTH, picture
from ovlpt.openvino_api import openvino_module, opset1
from ovlpt.reasons import Cause
from ovlpt.trace import InputError
from tests.conftest import is_avx2_vnni
from tests.gpu_networks import attention
from tests.graphs import dequantization, f32, fake_quantize, integers, model, opset5, parameter
from tools import answers

CHANNELS, SIZE = 64, 24  # enough work for the layers to take longer than calling them
RANGE = 0.0, 2.55


def image(channels: int = CHANNELS, size: int = SIZE):
    return parameter((1, channels, size, size))


def quantized(node, name: str, low=RANGE[0], high=RANGE[1]):
    return fake_quantize(node, low, high, name=name)


def convolution(node, name: str, precision: type = np.int8, zero_point: float | None = None):
    kernel = dequantization(integers((CHANNELS, CHANNELS, 3, 3), precision), 0.001, zero_point, f"{name}/weights")
    made = opset1.convolution(node, kernel, [1, 1], [1, 1], [1, 1], [1, 1])
    made.set_friendly_name(name)
    return made


def chain(between=lambda node: node, **weights):
    """Convolution, something, convolution."""
    first = convolution(quantized(image(), "fq_image"), "first")
    return model(opset1.relu(convolution(between(quantized(opset1.relu(first), "fq")), "second", **weights)))


def pooled(node):
    """As the PyTorch front end writes a pooling with ``ceil_mode``."""
    made = openvino_module("opset14").max_pool(node, [1, 1], [1, 1], [0, 0], [0, 0], [2, 2], "ceil_torch")
    made.set_friendly_name("pool")
    return made.output(0)


def per_channel():
    high = np.linspace(1, 2.5, CHANNELS).reshape(1, CHANNELS, 1, 1)
    return model(opset1.relu(convolution(quantized(image(), "fq", 0 * high, high), "conv")))


def not_quantized_between():
    return model(opset1.relu(convolution(opset1.relu(convolution(quantized(image(), "fq"), "first")), "second")))


def long_stride():
    """A transposed convolution that the CPU plugin has no int8 kernel for."""
    kernel = dequantization(integers((CHANNELS, CHANNELS, 8, 8)), 0.001, name="weights")
    node = opset1.convolution_backprop_data(quantized(image(size=12), "fq"), kernel, [4, 4])
    return model(opset1.relu(node))


def tiny():
    node = parameter((1, 16))
    for at in range(4):
        kernel = dequantization(integers((16, 16)), 0.001, name=f"weights{at}")
        node = opset1.relu(opset1.matmul(fake_quantize(node, 0.0, 2.55, name=f"fq{at}"), kernel, False, True))
    return model(node)


FORBIDDEN = ovlpt.PluginConfig("test", precision_restrictions=(ovlpt.PrecisionsRestriction.create("Convolution", {}),))

OBSTACLES = {
    "a pooling": (lambda: chain(pooled), {"native_only": True}, Cause.PLACEMENT, "MaxPool", "lost_upstream"),
    "a function": (lambda: chain(opset1.sigmoid), {}, Cause.PLACEMENT, "Sigmoid", "lost_upstream"),
    "activations per channel": (per_channel, {}, Cause.PLACEMENT, "Convolution", "per_channel_activations"),
    "weights in u8": (
        lambda: chain(precision=np.uint8, zero_point=128.0),
        {"native_only": True},
        Cause.PLACEMENT,
        "Convolution",
        "weights_zero_point",
    ),
    "nothing quantized": (not_quantized_between, {}, Cause.PLACEMENT, "Convolution", "float_result"),
    "a restriction": (chain, {"config": FORBIDDEN}, Cause.SETTINGS, "Convolution", "restriction"),
    "no kernel": (long_stride, {}, Cause.HARDWARE, "ConvolutionBackpropData", "no_kernel"),
}


def fixed_time(layer: LayerExecution) -> float:
    """Milliseconds of a layer, about those of an idle machine: they settle what costs most."""
    if not layer.is_executed:
        return 0.0
    if layer.layer_type not in ("Convolution", "Deconvolution"):
        return 0.05
    return 0.4 if layer.is_int8 else 1.2


def fix_times(monkeypatch, part: float = 1.0) -> None:
    """Report the layers and kernels that run here with fixed times, or a ``part`` of them."""

    def executed(compiled, arrays, **_):
        layers = execution_types(compiled, arrays)
        return ExecutionTypes([dataclasses.replace(layer, real_time=part * fixed_time(layer)) for layer in layers])

    def measured(compiled, *_):
        times = {name: part * sum(map(fixed_time, execution_types(each))) for name, each in compiled.items()}
        speed = times["float"] / times["int8"]
        return Latencies(times, times, call=0.005, layer=0.002, speed=speed, speed_interval=(speed, speed))

    monkeypatch.setattr(facts, "execution_types", executed)
    monkeypatch.setattr(facts, "latencies", measured)


@pytest.fixture
def fixed_times(monkeypatch):
    fix_times(monkeypatch)


def found(graph, core, **settings):
    return report(graph, core=core, seconds=0.2, **settings)


@pytest.mark.usefixtures("fixed_times")
@pytest.mark.parametrize("name", OBSTACLES)
def test_obstacle(name, core):
    build, settings, cause, operation, code = OBSTACLES[name]
    result = found(build(), core, **settings)
    assert (result.verdict.cause, result.bottlenecks[0].operation, result.bottlenecks[0].code) == (
        cause,
        operation,
        code,
    ), result.bottlenecks
    assert result.bottlenecks[0].cause is cause
    assert result.bottlenecks[0].text in result.verdict.text
    assert result.bottlenecks[0].work_share >= 0.4
    assert result.facts.int8_work_share <= 0.6


@pytest.mark.skipif(
    "OVLPT_ZOO" not in os.environ,
    reason="the zoo's networks need torch: python -m tools.zoo resnet50 bert googlenet -o DIR, and OVLPT_ZOO=DIR",
)
@pytest.mark.parametrize(
    ("name", "settings", "cause", "first"),
    [
        ("resnet50", {}, None, None),
        ("bert", {}, None, "Softmax"),
        ("googlenet", {"native_only": True}, Cause.PLACEMENT, "MaxPool"),
    ],
)
def test_networks_of_the_zoo(name, settings, cause, first, core):
    result = report(Path(os.environ["OVLPT_ZOO"], f"{name}.xml"), core=core, seconds=1, **settings)
    if first:
        assert result.bottlenecks[0].operation == first
    else:  # the picture alone is quantized and laid out, before the first layer
        assert {each.cause for each in result.bottlenecks} <= {Cause.MOVEMENT}
    assert result.verdict.cause is (cause or (Cause.HARDWARE if result.facts.saturates else Cause.NOTHING))
    assert (result.facts.int8_work_share > 0.98) is (cause is None)


@pytest.mark.skipif(is_avx2_vnni(), reason="the plugin's kernel of such an attention ends the process, with stock, too")
@pytest.mark.usefixtures("fixed_times")
def test_the_products_of_an_attention_count_in_their_own_precision(core):
    """On a CPU with AVX-512 both are one kernel."""
    result = found(answers.attention(), core)
    assert result.facts.int8_work_share == 0.5
    assert sum(layer.multiply_accumulates for layer in result.layers) == 2 * 2 * 32 * 32 * 32
    assert ("Softmax", ("softmax",)) in [(each.operation, each.roots) for each in result.bottlenecks]
    assert found(answers.attention(probabilities=True), core).facts.int8_work_share == 1


@pytest.mark.usefixtures("fixed_times")
def test_nothing_in_the_way(core):
    result = found(chain(), core)
    assert result.facts.int8_work_share == 1
    assert result.verdict.cause is (Cause.HARDWARE if result.facts.saturates else Cause.NOTHING)
    assert ("VNNI" in result.verdict.text) is result.facts.saturates


def test_too_small(core, monkeypatch):
    fix_times(monkeypatch, part=0.01)
    result = found(tiny(), core)
    assert result.facts.int8_work_share == 1
    assert result.verdict.cause is Cause.TOO_SMALL


FACTS = Facts("CPU", True, False, 0.95, 0.98, 10.0, 0.5, 60, speed=2.0, speed_interval=(1.9, 2.1))
FLOAT = Bottleneck("Sigmoid", Cause.GRAPH, "no_rule", "it is not linear", "", ("s",), (3,), 4.0, 0.4, 0.3)
UNQUANTIZED = dataclasses.replace(FLOAT, operation="MatMul", cause=Cause.PLACEMENT, milliseconds=1.0, work_share=0.1)


@pytest.mark.parametrize(
    "facts, bottlenecks, cause",
    [
        ({}, (), Cause.NOTHING),
        ({"saturates": True}, (), Cause.HARDWARE),
        ({"has_int8": False, "overhead": 9.0, "int8_work_share": 0.0}, (FLOAT,), Cause.HARDWARE),
        ({"overhead": 6.0, "int8_work_share": 0.0}, (FLOAT,), Cause.TOO_SMALL),
        ({"int8_work_share": 0.6}, (FLOAT, UNQUANTIZED), Cause.GRAPH),
        ({"int8_work_share": 0.6}, (UNQUANTIZED, UNQUANTIZED, UNQUANTIZED, UNQUANTIZED, FLOAT), Cause.PLACEMENT),
        ({"int8_time_share": 0.5, "saturates": True}, (FLOAT, UNQUANTIZED), Cause.GRAPH),
        ({"int8_time_share": 0.8}, (FLOAT,), Cause.NOTHING),
    ],
)
def test_which_cause_comes_first(facts, bottlenecks, cause):
    assert verdict(dataclasses.replace(FACTS, **facts), bottlenecks).cause is cause


@pytest.mark.usefixtures("fixed_times")
@pytest.mark.parametrize("settings, cause", [({"config": FORBIDDEN}, Cause.SETTINGS), ({}, Cause.PLACEMENT)])
def test_a_device_s_own_restrictions_are_no_settings(settings, cause, core):
    """The CPU takes no transposed convolution of data with a zero point, which another quantization does not have."""
    kernel = dequantization(integers((CHANNELS, CHANNELS, 2, 2)), 0.001, name="weights")
    node = opset1.convolution_backprop_data(quantized(image(size=12), "fq", -1.0, 1.55), kernel, [2, 2])
    graph = model(opset1.relu(node)) if not settings else chain()
    assert found(graph, core, **settings).bottlenecks[0].cause is cause


def test_multiply_accumulates():
    data = parameter((2, 6, 8, 8))
    ones = {shape: f32(np.ones(shape)) for shape in ((4, 6, 3, 3), (6, 1, 1, 3, 3), (6, 4, 2, 2), (8, 5))}
    attributes = [1, 1], [0, 0], [0, 0], [1, 1]
    cells = [f32(np.ones(shape)) for shape in ((1, 20, 3), (1, 20, 5), (1, 20))]
    state, lengths = f32(np.zeros((2, 1, 5))), opset1.constant(np.full(2, 7, np.int32))
    steps = parameter((2, 7, 3))
    nodes = {
        opset1.convolution(data, ones[4, 6, 3, 3], *attributes): 2 * 4 * 6 * 6 * 6 * 9,
        opset1.group_convolution(data, ones[6, 1, 1, 3, 3], *attributes): 2 * 6 * 6 * 6 * 9,
        opset1.convolution_backprop_data(data, ones[6, 4, 2, 2], [2, 2]): 2 * 6 * 64 * 4 * 4,
        opset1.matmul(data, ones[8, 5], False, False): 2 * 6 * 8 * 8 * 5,
        opset1.matmul(data, data, True, False): 2 * 6 * 8 * 8 * 8,
        opset5.lstm_sequence(steps, state, state, lengths, *cells, 5, "FORWARD"): 2 * 7 * 20 * (3 + 5),
        opset1.relu(data): 0,
        opset1.matmul(parameter((-1, 8)), ones[8, 5], False, False): 0,
    }
    assert {node: multiply_accumulates(node) for node in nodes} == nodes


@pytest.fixture(scope="module")
def pool(core):
    return found(chain(pooled), core, native_only=True)


def test_the_layers_and_their_work(pool):
    assert [layer.multiply_accumulates for layer in pool.executed if layer.type == "Convolution"] == [
        CHANNELS * CHANNELS * 9 * size * size for size in (SIZE, SIZE - 1)
    ]
    kinds = {layer.type: layer.kind for layer in pool.executed}
    assert kinds["Pooling"] is Kind.FLOAT
    assert [layer.kind for layer in pool.executed if layer.type == "Convolution"] == [Kind.INT8, Kind.FLOAT]
    assert all(layer.reason for layer in pool.executed if layer.kind is Kind.FLOAT)
    assert sum(pool.time_shares().values()) == pytest.approx(1)
    assert all(source < layer.index for layer in pool.layers for source in layer.inputs)


def test_an_activation_between_integers_is_no_computation_of_indices(core):
    """Swish as NNCF quantizes it, at open sizes: a layer from i8 to u8 that computes in f32."""
    first = convolution(quantized(parameter((-1, CHANNELS, -1, -1)), "fq_image"), "first")
    gate = quantized(opset1.sigmoid(first), "fq_gate", 0, 1)
    swish = quantized(opset1.multiply(quantized(first, "fq_first", -2.56, 2.54), gate), "fq_swish", -0.3, 2.25)
    layers = found(model(opset1.relu(convolution(swish, "second"))), core).executed
    assert Kind.OTHER not in {layer.kind for layer in layers}
    assert ["not linear" in layer.answer.reason.text for layer in layers if layer.kind is Kind.FLOAT] == [True]


def test_a_dynamic_batch(core):
    graph = chain()
    graph.reshape([-1, CHANNELS, SIZE, SIZE])
    assert sum(layer.multiply_accumulates for layer in found(graph, core).layers) == 2 * CHANNELS**2 * 9 * SIZE**2


def test_borders(core):
    result = found(chain(opset1.sigmoid), core)
    sorts = {each.sort: each for each in result.borders}
    assert [result.layers[at].type for at in sorts["Reorder"].layers] == [
        layer.type for layer in result.executed if layer.type == "Reorder"
    ]
    assert sum(each.milliseconds for each in result.borders) <= sum(layer.milliseconds for layer in result.executed) * 2
    quantizes = [result.layers[at] for at in sorts["FakeQuantize and Convert"].layers]
    assert any("fq_image" in layer.name for layer in quantizes)


def test_float_islands():
    """int8 → float → int8 is one, what follows the last int8 layer is none."""

    def layer(index, kind, *inputs):
        return Layer(index, str(index), "", "", "f32", "f32", 1.0, 0, kind, True, (), inputs)

    kinds = Kind.INT8, Kind.FLOAT, Kind.BORDER, Kind.INT8, Kind.FLOAT
    layers = [layer(at, kind, *([at - 1] if at else [])) for at, kind in enumerate(kinds)]
    assert [[each.index for each in island] for island in float_islands(layers)] == [[1, 2]]


def test_the_picture(pool):
    made = picture(pool.layers)
    assert [box.layer.index for box in made.boxes] == list(range(len(pool.layers)))
    corners = [(box.x, box.y) for box in made.boxes]
    for at, (x, y) in enumerate(corners):
        assert 0 <= x <= made.width - WIDTH
        assert 0 <= y <= made.height - HEIGHT
        assert all(abs(x - a) >= WIDTH or abs(y - b) >= HEIGHT for a, b in corners[at + 1 :])
    below = {(arrow.source, arrow.target) for arrow in made.arrows}
    assert below == {(source, layer.index) for layer in pool.layers for source in layer.inputs}
    assert all(corners[source][1] < corners[target][1] for source, target in below)


def test_the_page_needs_no_network_and_is_well_formed(pool):
    page = to_html(pool)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    checked = Balanced()
    checked.feed(page)
    assert checked.open == []
    for layer in pool.executed:
        assert f'id="row{layer.index}"' in page
        assert f'id="box{layer.index}"' in page


class Balanced(HTMLParser):
    """Which elements are open."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link", "input", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("path", "rect", "line"):
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        pass


def test_names_are_escaped(core):
    graph = chain()
    for node in graph.get_ops():
        if node.get_friendly_name() == "second":
            node.set_friendly_name("</script><script>alert(1)</script>")
    assert "<script>alert" not in to_html(found(graph, core))


def test_the_size_of_a_large_report(pool):
    """Two thousand layers that say as much as the most talkative one of a real network."""
    talkative = max(pool.layers, key=lambda layer: len(str(layer.to_json())))
    layers = [
        dataclasses.replace(talkative, index=at, name=f"{'stage.' * 12}{at}", inputs=(at - 1,) if at else ())
        for at in range(2000)
    ]
    page = to_html(dataclasses.replace(pool, layers=layers))
    assert len(page) < 5e6
    assert 'class="picture near"' in page


def test_the_files(tmp_path, capsys):
    paths = {name: str(tmp_path / f"report.{name}") for name in ("html", "json", "csv")}
    command = ["report", str(data.digits()), "-o", paths["html"], "--json", paths["json"], "--csv", paths["csv"]]
    assert cli.main(command) == 0
    content = json.loads((tmp_path / "report.json").read_text())["result"]
    assert content["verdict"]["text"] in " ".join(capsys.readouterr().out.split())
    with open(paths["csv"], newline="") as file:
        rows = list(csv.DictReader(file))
    executed = [layer for layer in content["layers"] if layer["executed"]]
    assert [row["name"] for row in rows] == [layer["name"] for layer in executed]
    assert {row["kind"] for row in rows} <= set(Kind)
    page = (tmp_path / "report.html").read_text()
    assert all(f"title>{layer['name']}<" in page for layer in executed)
    assert content["int8_multiply_accumulate_share"] == 1
    assert sum(content["time_shares"].values()) == pytest.approx(1)
    assert content["trace"]


def test_a_virtual_gpu_has_no_times(tmp_path, capsys):
    """Attention is not compiled to machine code there, which nothing could load."""
    path, out = str(tmp_path / "net.xml"), {name: tmp_path / f"report.{name}" for name in ("html", "json", "csv")}
    save_model(attention(), path, compress_to_fp16=False)
    files = ["-o", str(out["html"]), "--json", str(out["json"]), "--csv", str(out["csv"])]
    assert cli.main(["report", path, "-d", "GPU", "--virtual", "dg2", *files]) == 0
    assert "times are not known" in capsys.readouterr().out
    content = json.loads(out["json"].read_text())["result"]
    assert content["device"].startswith("GPU (Virtual Arc")
    assert content["latency_ms"] is content["time_shares"] is content["layers"][0]["milliseconds"] is None
    assert content["int8_multiply_accumulate_share"] > 0.9
    page = out["html"].read_text()
    assert "No times" in page
    assert not re.search(r"\d ms\b|class=.time|of the time", page)
    assert ",0.0," not in out["csv"].read_text()


def test_what_cannot_be_reported(tmp_path, capsys):
    assert cli.main(["report", str(tmp_path / "none.xml"), "-o", str(tmp_path / "a.html")]) == 2
    assert cli.main(["report", str(data.digits()), "-o", str(tmp_path / "none" / "a.html")]) == 2
    assert cli.main(["report", str(data.digits_float()), "-o", str(tmp_path / "a.html")]) == 2
    assert cli.main(["report", str(data.digits()), "-d", "TPU", "-o", str(tmp_path / "a.html")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [
        "no file" in said[0],
        "no such folder" in said[1],
        "is not quantized" in said[2],
        "no device" in said[3],
    ] == [True] * 4


def test_a_transformed_model_has_no_reasons_left(core):
    with pytest.raises(InputError, match="give the quantized model that it was made from"):
        found(ovlpt.transform(chain(), core=core), core)


def test_a_missing_package_is_named_before_the_work(monkeypatch, capsys):
    monkeypatch.setattr("ovlpt.inspect.report.page.find_spec", lambda name: None if name == "jinja2" else object())
    assert cli.main(["report", "any.xml"]) == 2
    assert "pip install 'ovlpt[report]'" in capsys.readouterr().err


def test_the_caller_s_model_stays(core):
    graph = chain()
    before = to_text(graph)
    found(graph, core)
    assert to_text(graph) == before


def test_a_line_of_the_scatter_has_the_speed_of_the_points_on_it():
    shown = [SimpleNamespace(multiply_accumulates=work, milliseconds=time) for work, time in ((1e7, 1.0), (1e3, 0.02))]
    found = scatter(shown)
    assert [point.giga_per_second for point in found.points] == pytest.approx([10, 0.05])
    fast = found.points[0]  # in the corner on the right, above
    line = next(line for line in found.lines if line.giga_per_second == 10)
    assert line.upper_end == pytest.approx((fast.x, fast.y))
    line = next(line for line in found.lines if line.giga_per_second == 1)  # 1 ms for 1e6
    assert line.upper_end == pytest.approx((PLOT_WIDTH * 3 / 4, 0))
