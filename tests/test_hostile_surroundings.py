"""Commands where the disk is full, nobody reads, a person interrupts, or the locale knows ASCII only."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ovlpt import cli, data
from ovlpt.commands import explain as command
from ovlpt.device.counters import read_counters
from ovlpt.files import csv_cell, write_text
from ovlpt.trace import InputError

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is always full")
MODEL = str(data.digits())


@needs_full
def test_a_full_disk_is_one_sentence(capsys):
    assert cli.main(["explain", MODEL, "--json", str(FULL)]) == 2
    assert "No space left on device" in capsys.readouterr().err


@needs_full
def test_a_full_standard_output_is_one_sentence(monkeypatch, capsys):
    with FULL.open("w", buffering=1 << 16) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert cli.main(["explain", MODEL]) == 2
    assert capsys.readouterr().err == "ovlpt: cannot use the standard output: No space left on device\n"


def test_nobody_reads_on(monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert cli.main(["explain", MODEL]) == 141
    assert capsys.readouterr().err == ""


def test_no_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["explain", MODEL]) == 0


def test_an_interrupt_leaves_no_trace(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "explain", interrupted)
    assert cli.main(["explain", MODEL]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_that_openvino_makes_its_own_is_one(monkeypatch, capsys):
    """The exception is lost in a pass: what is raised is another, or nothing."""

    def lost(*_, **__):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise InputError("the device does not compile it")

    monkeypatch.setattr(command, "explain", lost)
    assert cli.main(["explain", MODEL]) == 130
    assert capsys.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


INTERRUPTED = """
import signal, sys
from ovlpt import __main__ as program
class Interrupts:
    def find_spec(self, name, *_):
        if name == "ovlpt.cli":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
sys.exit(program.main())
"""


def test_an_interrupt_before_the_command_leaves_no_trace():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_defect_is_no_answer(monkeypatch, capsys):
    """A gate reads status 1 as "no"."""

    def fails(*_, **__):
        raise RuntimeError("Exception from a.cpp:1:\nno kernel\n\n")

    monkeypatch.setattr(command, "explain", fails)
    assert cli.main(["explain", MODEL]) == 3
    sentence = "ovlpt: a defect of ovlpt, or of OpenVINO below it (RuntimeError: no kernel); -v shows where\n"
    assert capsys.readouterr() == ("", sentence)
    assert cli.main(["explain", MODEL, "-v"]) == 3
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.endswith(sentence)


def test_json_on_the_standard_output_is_alone_there(capsys):
    assert cli.main(["explain", MODEL, "--json", "-"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["command"] == "explain"
    assert "layers with weights run in int8" in shown.err


def test_a_file_is_whole_or_what_it_was(tmp_path, monkeypatch):
    target = tmp_path / "x.json"
    write_text(target, "old")
    target.chmod(0o640)

    def full(path, text, **_):
        path.write_bytes(text[:1].encode())
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(InputError, match=r'cannot write ".*x.json": No space left on device'):
            write_text(target, "new")
    assert target.read_text() == "old"
    write_text(target, "é")
    assert target.read_text("utf-8") == "é"
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"


def test_counters_with_huge_fields_and_strange_breaks(tmp_path):
    name = "n" * 200_000 + "\x0b\u2028\x85"
    first = "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)"
    (tmp_path / "c.csv").write_text(f"{first}\n{name};EXECUTED;Convolution;x_I8;1;1\n", encoding="utf-8")
    assert [layer.name for layer in read_counters(tmp_path / "c.csv")] == [name]


def test_cells_that_a_spreadsheet_would_compute_are_quoted():
    given = ("=a", "+a", "-a", "@a", "a=", -1.5, None)
    assert [csv_cell(each) for each in given] == ["'=a", "'+a", "'-a", "'@a", "a=", -1.5, None]


ASCII_ONLY = """
import sys
from ovlpt import cli
sys.exit(cli.main(["check", sys.argv[1], "--no-numbers", "--expect", "f32:Convolution", "--save-baseline", sys.argv[2]])
         or cli.main(["transform", sys.argv[1], "-o", sys.argv[1] + chr(233) + ".xml"]))
"""


def test_names_beyond_ascii_in_the_c_locale(tmp_path):
    import openvino

    from tests.networks import convolution, model, parameter, quantized

    x = parameter([1, 4, 4, 4])
    net = model(convolution(quantized(x, 0, 2.55), 4, name="größe 層"), x)
    path = tmp_path / "größe 層.xml"
    openvino.save_model(net, path, compress_to_fp16=False)
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "80"}
    program = [sys.executable, "-c", ASCII_ONLY, str(path), str(tmp_path / "bäse.json")]
    done = subprocess.run(program, env={**os.environ, **plain}, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert "gr\\xf6\\xdfe" in done.stdout
    widths = {len(line) for line in done.stdout.splitlines() if line.startswith(("|", "+"))}
    assert len(widths) == 1
    assert widths.pop() <= 80
    layers = json.loads((tmp_path / "bäse.json").read_text("utf-8"))["result"]["layers"]
    assert any(layer["name"].startswith("größe 層") for layer in layers)
