"""Commands where the disk is full, nobody reads, a person interrupts, or the locale knows ASCII only."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ovlpt import cli, data
from ovlpt.commands import bench
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
    assert capsys.readouterr().err == "ovlpt: cannot use standard output: No space left on device\n"


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


def test_no_standard_error(monkeypatch, capsys):
    """What is for people does not go to where programs read."""
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(["explain", "none.xml"]) == 2
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(["explain", MODEL, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["command"] == "explain"


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
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")  # which a shell calls 130


def test_a_defect_is_no_answer(monkeypatch, capsys):
    """A gate reads status 1 as "no"."""

    def fails(*_, **__):
        raise RuntimeError("Exception from a.cpp:1:\nno kernel\n\n")

    monkeypatch.setattr(command, "explain", fails)
    assert cli.main(["explain", MODEL]) == 3
    sentence = "ovlpt: a bug in ovlpt, or in OpenVINO (RuntimeError: no kernel); -v shows where\n"
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


def interrupted_at(line: bytes, code: str) -> int:
    """The status of a program that is interrupted, with its processes, when it has printed a line, and says nothing of it."""
    program = [sys.executable, "-c", code, MODEL]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as running:
        assert running.stdout.readline() == line
        os.killpg(running.pid, signal.SIGINT)
        assert running.communicate(timeout=50)[1] == b""
    return running.returncode


FORKS = """
import multiprocessing, sys, time
from ovlpt import __main__ as program
from ovlpt.commands import explain
def forks(options):
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
    process.start()
    print("under way", flush=True)
    process.join()
    return time.sleep(60)
explain.call = forks
sys.argv = ["ovlpt", "explain", sys.argv[1]]
sys.exit(program.main())
"""


def test_a_process_that_was_forked_says_nothing_of_an_interrupt():
    """As OpenVINO's telemetry forks one. A terminal sends the interrupt to it, too."""
    assert interrupted_at(b"under way\n", FORKS) == 130


WHILE_IMPORTED = """
import signal, sys
from ovlpt import cli
class Interrupts:
    def find_spec(self, name, *_):
        if name in ("openvino._pyopenvino", "ovlpt.inspect.explain"):
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
status = cli.main(["explain", "none.xml"])
assert sys.modules["openvino"].Core and sys.modules["ovlpt.commands.explain"].call
sys.exit(status)
"""


def test_an_interrupt_while_a_command_is_imported_waits():
    """Else it can leave a lock behind, for which OpenVINO's telemetry waits in its thread."""
    done = subprocess.run([sys.executable, "-c", WHILE_IMPORTED], capture_output=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


AT_THE_END = """
import signal, sys, threading, time
from ovlpt import __main__ as program
from ovlpt.commands import explain
def leaves_a_thread(options):
    threading.Thread(target=time.sleep, args=(2,)).start()
    threading._register_atexit(lambda: print("ends", flush=True))
    return 0
explain.call = leaves_a_thread
sys.argv = ["ovlpt", "explain", sys.argv[1]]
sys.exit(program.main())
"""


def test_an_interrupt_while_python_ends_leaves_no_trace():
    assert interrupted_at(b"ends\n", AT_THE_END) == -signal.SIGINT


AS_ON_WINDOWS = """
import multiprocessing, os, signal, sys, tempfile
from pathlib import Path
import numpy, openvino
sys.modules.update(fcntl=None, resource=None)
for owner, names in (os, ("getuid", "register_at_fork")), (signal, ("SIGALRM", "pthread_sigmask", "setitimer", "siginterrupt")):
    for name in names:
        delattr(owner, name)
exists = Path.exists
Path.exists = lambda path: not str(path).startswith("/proc") and exists(path)
from ovlpt import cli
from ovlpt.device import cache
cache.own_folder(Path(sys.argv[2]).parent / "own")
sys.exit(cli.main(["check", sys.argv[1]]) or cli.main(["transform", sys.argv[1], "-o", sys.argv[2]]))
"""


def test_a_system_without_what_posix_adds(tmp_path):
    """No numbers of users, no forks, no locks of files, no list of the CPU's flags."""
    saved = tmp_path / "saved.xml"
    done = subprocess.run([sys.executable, "-c", AS_ON_WINDOWS, MODEL, str(saved)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "every layer as expected" in done.stdout
    assert saved.exists()
    assert (tmp_path / "own").is_dir()


def test_a_full_disk_leaves_no_folder(tmp_path, monkeypatch, capsys):
    """Nor takes one that was there."""
    (tmp_path / "old").mkdir()
    arguments = ["bench", MODEL, "-niter", "1", "-report_folder"]
    own = resource.getrlimit(resource.RLIMIT_FSIZE)
    written = bench._write_report

    def full(*given):
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, own[1]))
        try:
            written(*given)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, own)

    with monkeypatch.context() as patched:
        patched.setattr(bench, "_write_report", full)
        for folder in ("new/below", "old/below", "old"):
            assert cli.main([*arguments, str(tmp_path / folder)]) == 2
            assert capsys.readouterr().err.endswith('benchmark_report.csv": File too large\n')
    assert [*tmp_path.rglob("*")] == [tmp_path / "old"]
    assert cli.main([*arguments, str(tmp_path / "new/below")]) == 0
    assert len([*tmp_path.rglob("new/below/digits/*/benchmark_report.csv")]) == 2


LOST = """
import gc, signal, sys, time
from ovlpt import __main__ as program
from ovlpt.commands import explain
class Collected:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def works_on(options):
    Collected()
    try:
        time.sleep(60)
    finally:
        time.sleep(2)  # who tidies up is not disturbed
        print("tidy")
explain.call = works_on
sys.argv = ["ovlpt", "explain", sys.argv[1]]
sys.exit(program.main())
"""


def test_an_interrupt_that_gets_lost_comes_again():
    """In what the garbage collector calls, an exception is printed, and nothing more."""
    done = subprocess.run([sys.executable, "-c", LOST, MODEL], capture_output=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"tidy\n", b"")


IN_A_THREAD = """
import signal, sys, threading
from ovlpt import __main__ as program
from ovlpt.commands import explain
def starts(options):
    def fails():
        interrupted.wait()
        raise ImportError("of what the interrupt left half imported")
    interrupted = threading.Event()
    thread = threading.Thread(target=fails)
    thread.start()
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        interrupted.set()
        thread.join()
explain.call = starts
sys.argv = ["ovlpt", "explain", sys.argv[1]]
sys.exit(program.main())
"""


def test_a_thread_that_fails_of_an_interrupt_says_nothing():
    done = subprocess.run([sys.executable, "-c", IN_A_THREAD, MODEL], capture_output=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("command", ["transform", "report", "explain"])
def test_a_file_in_a_protected_folder_is_refused_before_the_work(command, tmp_path, monkeypatch, capsys):
    """Though it could be written: what replaces it is written beside it."""
    target = tmp_path / ("x.json" if command == "explain" else "x.html" if command == "report" else "x.xml")
    target.touch()
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != tmp_path and access(path, mode)
    )  # of whoever runs it
    option = "--json" if command == "explain" else "-o"
    assert cli.main([command, MODEL, option, str(target)]) == 2
    assert capsys.readouterr().err == f'ovlpt: cannot write "{target}": its folder "{tmp_path}" is protected\n'


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            ["nosuch"],
            ["ru"],
            ["run", "--nosuch"],
            ["run", "a", "b"],
            ["explain"],
            ["verify", MODEL, "--layers", "0x1"],
        ),
        *(["bench", MODEL, "-niter", "1e3"], ["bench", MODEL, "-hint", "\x1b[2J"], ["run", MODEL, "-d"], ["run\n"]),
        *(["--completion", "cmd"], ["compare", MODEL, "--threads", "\udcff"], ["check", MODEL, "--workers", "two"]),
    ],
)
def test_a_command_that_is_none_is_one_sentence(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    shown = capsys.readouterr()
    assert (left.value.code, shown.out) == (2, "")
    assert shown.err.startswith("ovlpt: ")
    assert shown.err.endswith("--help\n")
    assert shown.err.count("\n") == 1
    assert "\x1b" not in shown.err


WITHOUT_HOME = """
import logging, sys
class Warns:
    def find_spec(self, name, *_):
        if name == "openvino._pyopenvino":
            logging.warning("Please allow write access")
sys.meta_path.insert(0, Warns())
from ovlpt import cli
sys.exit(cli.main(["explain", "none.xml", "-v"]))
"""


def test_what_openvino_logs_while_it_is_imported_is_not_shown():
    """As its telemetry does where the home folder is protected. The root of all loggers would print from then on."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_HOME], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert [line[: len("ovlpt: ")] for line in done.stderr.splitlines()] == ["ovlpt: "] * 2


STUCK = """
import multiprocessing, signal, sys, threading, time
from ovlpt import __main__ as program
from ovlpt.commands import explain
def leaves_a_thread(options):
    print("written")
    held = threading.Lock()
    held.acquire()
    threading.Thread(target=held.acquire).start()
    multiprocessing.get_context("fork").Process(target=held.acquire, daemon=True).start()
    signal.raise_signal(signal.SIGINT)
explain.call = leaves_a_thread
sys.argv = ["ovlpt", "explain", sys.argv[1]]
sys.exit(program.main())
"""


def test_an_interrupt_waits_for_no_thread():
    """As one of OpenVINO's telemetry may wait for the network, or for a lock of an import that was interrupted."""
    done = subprocess.run([sys.executable, "-c", STUCK, MODEL], capture_output=True, timeout=50, start_new_session=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"written\n", b"")
