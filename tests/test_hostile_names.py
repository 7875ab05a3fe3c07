"""Names in a model are shown as they are: neither markup nor a command to the terminal."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ovlpt import cli
from ovlpt.commands import bench as bench_command
from ovlpt.display import printable
from ovlpt.inspect import complete, run, shard_errors
from ovlpt.inspect.bench import Bench, Side
from ovlpt.openvino_api import opset1
from tests.networks import convolution, model, parameter, quantized
from tests.test_cli import save

CLOSING, STYLED, COLOURED, TURNED = "conv[/foo]", "[red]x[/red]", "\x1b[31mx\x1b]0;t\x07", ":smile:\u202eabc[/]"
SHOWN = {name: printable(name) for name in (CLOSING, STYLED, COLOURED, TURNED)}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    x = value = parameter([1, 4, 4, 4])
    for seed, name in enumerate((CLOSING, STYLED, COLOURED)):
        value = convolution(quantized(value, 0, 2.55, 256, f"quantize {name}"), 4, seed=seed, name=name)
    lost = opset1.sigmoid(value)
    lost.set_friendly_name(TURNED)
    net = model(convolution(lost, 4, kernel=1, name="=float[/b]"), x)
    return save(net, tmp_path_factory.mktemp("hostile") / "net[b].xml")


CASES = {  # arguments, status, names that are printed
    "explain": ([], 0, [TURNED]),
    "verify": ([], 0, [CLOSING, STYLED, COLOURED]),
    "check": (["--no-numbers", "--expect", "f32:Convolution"], 1, [CLOSING, STYLED, COLOURED]),
    "transform": (["-o", "out[b].xml"], 0, []),
    "fuse": (["-o", "out[b].xml"], 0, []),
    "report": (["-o", "out.html", "--csv", "out[a].csv"], 0, []),
    "run": ([], 0, [CLOSING, STYLED, COLOURED]),
    "compare": ([], 0, [CLOSING, STYLED, COLOURED]),
    "complete": (["-i", "data.npz", "-o", "out.xml", "--max-loss", "90", "--min-gain", "0"], 0, []),
    "bench": ([], 0, [CLOSING, STYLED]),
}


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command(hostile, command, tmp_path, monkeypatch, capsys):
    arguments, status, names = CASES[command]
    np.savez(tmp_path / "data.npz", x=np.ones((1, 4, 4, 4), np.float32))
    for module in (complete, run, shard_errors):  # not what is asked here, and seconds
        monkeypatch.setattr(module, "interleaved_latencies", lambda runs, *_: {name: [1.0] for name in runs})
    side = Side(STYLED, 1.0, 1.0, 1.0, (1.0,), 1.0, "1", 1, 1, None)
    measured = Bench(CLOSING, "CPU", "latency", (side, side), 1.0, (1.0, 1.0), (1.0,))
    monkeypatch.setattr(bench_command, "bench", lambda *_, **__: measured)
    monkeypatch.chdir(tmp_path)
    assert cli.main([command, hostile, *arguments]) == status
    shown = capsys.readouterr()
    printed = shown.out
    assert not {"\x1b", "\x07", "\u202e"} & set(printed + shown.err)
    for name in names:
        assert SHOWN[name] in printed
    if command == "report":
        page = Path("out.html").read_text()
        details = re.search(r'id="details">(.*?)</script>', page, re.DOTALL)[1]
        assert not {"\x1b", "\x07", "\u202e"} & set(page + "".join(texts(json.loads(details))))
        written = [row["name"] for row in csv.DictReader(Path("out[a].csv").read_text().splitlines())]
        assert {CLOSING, "'=float[/b]"} <= set(written)  # a spreadsheet does not compute the second
    if command == "transform":
        assert '"out[b].xml"' in printed


def texts(value: object) -> Iterator[str]:
    """All text in what JSON holds."""
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def test_what_is_printable_stays():
    for text in ("a [b] {c} \\ \n", "größe 層 ✓", "a\u00a0b"):
        assert printable(text) == text
    assert printable("\x1b[0m\r\u202e\udcff") == "\\x1b[0m\\r\\u202e\\udcff"
    assert printable("two\nlines", lines=False) == "two\\nlines"


def test_an_error_is_one_line(tmp_path, capsys):
    assert cli.main(["explain", str(tmp_path / "a\nb\x1b[2J[/red].xml")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "a\\nb\\x1b[2J[/red].xml" in error


def test_the_printed_code_loads_any_path(tmp_path, hostile, capsys):
    """What is printed is Python, whatever the path holds."""
    target = str(tmp_path / 'a "b" \\n {c} é.xml')
    assert cli.main(["transform", hostile, "-o", target]) == 0
    call = compile(capsys.readouterr().out, "printed", "exec").co_consts
    assert target in call
