"""Unusable input of every command: one sentence, status 2, nothing written, before the work begins."""

from __future__ import annotations

import json
import os
import socket
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ovlpt import cli, data
from tests.networks import const, model, one_convolution, parameter
from tests.test_cli import save

LONG = "n" * 300
_ONE = '[models]\nx = "net.xml"\n'
FLEETS = (
    *("", "models = 5", "[models]", "[[models]]\nx = 1", "x = 1", f"{_ONE}[device]\na = {{}}", "[models]\nx = nan"),
    *("[models]\nx = 5", '[models]\nx = ""', "[models]\nx = {}", "[models]\nx = {path = 5}", '[models]\nx = "."'),
    *('[models]\nx = {path = "net.xml", input = "a"}', '[models]\nx = {path = "net.xml", inputs = "none.npz"}'),
    *('[models]\nx = "none*.xml"', '[models]\nx = "none.xml"', '[models]\nx = "[z-a]*"', '[models]\nx = "\\u0000.xml"'),
    *(
        '[models]\nx = "\\u001b[2J"',
        '[models]\nx = "[/red].xml"',
        f'[models]\nx = "{LONG}.xml"',
        "[models]\nx = " + "[" * 20000,
    ),
    *('[models]\nx = "net.*"', f"{_ONE}[devices]", f"{_ONE}[devices]\na = 5", f"{_ONE}[devices]\na = {{isa = 5}}"),
    *(f'{_ONE}[configurations]\na = {{config = "none.toml"}}', f'{_ONE}[expectations]\na = {{expect = "int8"}}'),
    *(f'{_ONE}[expectations]\na = {{baseline = "none.json"}}', f'{_ONE}[expectations]\na = {{numbers = "no"}}'),
    *(f'{_ONE}[[without]]\nmodels = ["{name}"]' for name in "xy"),  # leaves none; is none
    *(f"{_ONE}[[without]]\n{row}" for row in ("", 'models = "x"', 'models = [["x"]]', 'model = ["x"]')),
    *("without = 5\n" + _ONE, "without = [5]\n" + _ONE),
)
OWN_TRANSFORMATIONS = (
    *(
        f"transformations = {value}"
        for value in ("5", '"acme"', "[5]", '[""]', '["acme"]', '["acme", "acme"]', "{a = 1}")
    ),
    *(
        f"transformations = {value}"
        for value in ('[["acme"]]', "[true]", "[1979-05-27]", '["\\u001b[2J"]', '["[/red]"]')
    ),
    *(f"transformations = {value}" for value in ('["os:system"]', '["a.b:c"]', f'["{LONG}"]', "[" * 20000)),
    *(
        "[transformations]",
        "[[transformations]]",
        '[transformations.ExtractImagePatches]\nkind = "passes"',
        "transformation = []",
    ),
    *(
        'disabled = ["ExtractImagePatchesTransformation"]',
        '[precisions.ExtractImagePatches]\n0 = ["u8"]',
        "[per_tensor]\nExtractImagePatches = [0]",
    ),
    *('[callbacks]\nExtractImagePatchesTransformation = "is_asymmetric_quantization"', 'callbacks = "os:system"'),
    *("tuned_for = 5", '[params]\ntuned_for = "x"', "[params]\nmat_mul_as_convolution = 5"),
    *(
        f"[params]\nmat_mul_as_convolution = {value}"
        for value in ("[[1, 2]]", "[[nan, 2, 3]]", "[[1, -1, 3]]", '"all"', "{}")
    ),
)


def _zip(path: str, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w") as made:
        for name, content in members.items():
            made.writestr(name, content)


def _npy(header: str) -> bytes:
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the cases name."""
    from ovlpt.openvino_api import opset1

    made, here = tmp_path_factory.mktemp("hostile"), Path.cwd()
    os.chdir(made)
    try:
        save(one_convolution(), "net.xml")
        x = parameter([1, 8])
        save(model(opset1.matmul(x, const(np.ones((8, 4))), False, False), x), "float.xml")
        for name in (
            "folder.xml",
            "folder.npz",
            "folder.toml",
            "folder.json",
            "folder.csv",
            "folder.html",
            "beside.bin",
        ):
            Path(name).mkdir()
        Path("empty.xml").touch()
        Path("text.xml").write_text("no model")
        Path("cut.xml").write_text(Path("net.xml").read_text()[:900])
        Path("binary.xml").write_bytes(bytes(range(256)))
        Path("no_weights.xml").write_text(Path("net.xml").read_text())
        Path("deep.xml").write_text("<net>" * 20000)
        Path("bad.onnx").write_bytes(b"\x08\x01" + bytes(range(256)))
        Path("net.unknown").write_text("no model")
        for name in ("sparse.xml", "sparse.pb"):
            Path(name).touch()
            os.truncate(name, 20 << 30)  # more than most machines could hold
        Path("levels.xml").write_text(data.digits().read_text().replace('levels="256"', 'levels="0"'))
        Path("levels.bin").write_bytes(data.digits().with_suffix(".bin").read_bytes())
        os.mkfifo("pipe.npz")  # nobody ever writes to it
        Path("loop.xml").symlink_to("loop.xml")
        with socket.socket(socket.AF_UNIX) as named:
            named.bind("socket.xml")

        np.save("shape.npy", np.zeros((3, 3)))
        np.save("strings.npy", np.array(["a", "b"]))
        np.savez("empty.npz")
        np.savez("strings.npz", x=np.array(["a", "b"]))
        np.savez("objects.npz", x=np.array([{}, []], object))
        np.savez("struct.npz", x=np.zeros((1, 16, 8, 8), [("a", "f4"), ("b", "i4")]))
        np.savez("complex.npz", x=np.zeros((1, 16, 8, 8), complex))
        np.savez("dates.npz", x=np.zeros((1, 16, 8, 8), "datetime64[s]"))
        np.savez("shape.npz", x=np.zeros((3, 3)))
        np.savez("scalar.npz", x=np.float32(1))
        np.savez("names.npz", a=np.zeros(1), b=np.zeros(1))
        _zip("text.npz", **{"x.txt": b"no array"})
        _zip("not_npy.npz", **{"x.npy": b"no array"})
        huge = "{'descr': '<f4', 'fortran_order': False, 'shape': (2400000000000,), }"
        _zip("huge.npz", **{"x.npy": _npy(huge)})
        Path("huge.npy").write_bytes(_npy(huge))
        Path("deep.npy").write_bytes(_npy("(" * 4000))
        _zip("overflow.npz", **{"x.npy": _npy(huge.replace("2400000000000", str(10**30)))})
        _zip("deep.npz", **{"x.npy": _npy("(" * 4000)})
        _zip("negative.npz", **{"x.npy": _npy(huge.replace("2400000000000", "-5"))})
        Path("cut.npz").write_bytes(Path("shape.npz").read_bytes()[:100])
        Path("nothing.npz").touch()
        Path("pickle.npy").write_bytes(b"\x80\x04N.")

        Path("bad.toml").write_text("name =")
        Path("deep.toml").write_text("name = " + "[" * 20000)
        Path("binary.toml").write_bytes(bytes(range(256)))
        Path("unknown.toml").write_text("[presicions.Convolution]\n0 = ['u8']")
        Path("types.toml").write_text("[precisions.Convolution]\n0 = ['u9']")
        Path("pass.toml").write_text("disabled = ['ConvolutionTransformatoin']")
        Path("name.toml").write_text("name = 5")
        Path("long.toml").write_text("a" * 100_000 + " = 1")
        Path("list.toml").write_text("disabled = [['a']]")

        Path("deep.json").write_text("[" * 100000)
        Path("text.json").write_text("no baseline")
        Path("binary.json").write_bytes(bytes(range(256)))
        Path("list.json").write_text("[]")
        Path("number.json").write_text('{"layers": 5}')
        Path("keys.json").write_text('{"device": "CPU", "layers": {}}')
        fields = {"name": [], "layer_type": "x", "precision": 5, "exec_type": None, "operations": "xy"}
        Path("fields.json").write_text(json.dumps({"device": "CPU", "layers": [fields]}))
        Path("other.json").write_text('{"device": "GPU", "layers": []}')

        Path("one.toml").write_text(_ONE)
        for kind, texts in (("fleet", FLEETS), ("own", OWN_TRANSFORMATIONS)):
            for number, text in enumerate(texts):
                Path(f"{kind}{number}.toml").write_text(text)

        first = "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)\n"
        Path("text.csv").write_text("no counters")
        Path("short.csv").write_text(first + "a;b\n")
        Path("times.csv").write_text(first + "a;EXECUTED;Convolution;x_I8;nan;1\n")
        Path("binary.csv").write_bytes(bytes(range(256)))
        Path("empty.csv").touch()
        yield made
    finally:
        os.chdir(here)


MODELS = (
    *(
        "none.xml",
        "",
        "folder.xml",
        ".",
        "empty.xml",
        "text.xml",
        "cut.xml",
        "binary.xml",
        "no_weights.xml",
        "deep.xml",
    ),
    *(
        "sparse.xml",
        "sparse.pb",
        "bad.onnx",
        "net.unknown",
        "loop.xml",
        "socket.xml",
        f"{LONG}.xml",
        "net.xml/x.xml",
        "float.xml",
        "/dev/null",
    ),
    *("x" * 5000, "[/red].xml", "\x1b[2J.xml", "a\nb.xml", "\udcff.xml", "é層.xml", "shape.npz", "none\0.xml"),
)
DATA = (
    *(
        "none.npz",
        "",
        "folder.npz",
        "empty.npz",
        "strings.npz",
        "objects.npz",
        "struct.npz",
        "complex.npz",
        "dates.npz",
    ),
    *("shape.npz", "scalar.npz", "names.npz", "text.npz", "not_npy.npz", "huge.npz", "overflow.npz", "deep.npz"),
    *("negative.npz", "cut.npz", "nothing.npz", "pickle.npy", "net.xml", f"{LONG}.npz", "\udcff.npz", "none\0.npz"),
    *("/dev/zero", "socket.xml", "pipe.npz"),
)
DEVICES = ("", "TPU", "CPU.0", "CPU.7", "[/red]", "MULTI:", "HETERO:CPU,TPU", "NPU", "\x1b[2J", "-", LONG)
NOT_THIS_CPU = ("GPU", "AUTO:GPU", "HETERO:CPU,GPU", "GPU.1", "CPU,CPU")
CONFIGS = (
    *(
        "none.toml",
        "",
        "folder.toml",
        "bad.toml",
        "deep.toml",
        "binary.toml",
        "unknown.toml",
        "types.toml",
        "pass.toml",
    ),
    *("name.toml", "long.toml", "list.toml", f"{LONG}.toml", "none\0.toml", "/dev/null/x", "\udcff.toml", "/dev/zero"),
)
OUTPUTS = ("", ".", "none/x.json", "folder.json", f"{LONG}.json", "net.xml/x.json", "none\0.json", "\x1b/x")
OTHER_OUTPUTS = ("-", *OUTPUTS)  # of what does not write to standard output
IR = (
    *("-", "", "none/x.xml", "folder.xml", f"{LONG}.xml", "net.xml/x.xml", "out", "out.onnx", "/dev/null", "net.xml"),
    *("beside.xml", "none\0.xml", "socket.xml", "./net.xml"),
)
BASELINES = (
    *("none.json", "", "folder.json", "deep.json", "text.json", "binary.json", "list.json", "number.json", "keys.json"),
    *("fields.json", "other.json", f"{LONG}.json", "none\0.json", "/dev/zero"),
)
COUNTERS = (
    *("none.csv", "", "folder.csv", "text.csv", "short.csv", "times.csv", "binary.csv", "empty.csv"),
    *(f"{LONG}.csv", "none\0.csv", "/dev/zero"),
)
EXPECTED = ("", "int8", "int8:", "int9:Convolution", "int8:Conv", ":", "int8:[/red]", "int8:,", "f32")
VALUES = (
    *("", "x", "x=", "=1", "x=none.npy", "x=folder.npz", "x=text.xml", "x=pickle.npy", "x=empty.npz", "x=strings.npz"),
    *("y=1", "[/red]=1", "x=\0", f"x={LONG}.npy", "x=shape.npy", "x=strings.npy", "x=\x1b[2J"),
    *("x=huge.npy", "x=deep.npy", "x=pipe.npz", "x=complex.npz", "x=/dev/zero", "x=none\0.npy", "x=socket.xml"),
)
LIMITS = {
    "max-loss": ("nan", "inf", "-1"),
    "min-gain": ("nan", "inf"),
    "time-limit": ("nan", "-1"),
    "threads": ("0", "-1"),
}
NAMES = ("", "x", "[/red]", "\x1b[2J", "\udcff", "none\0", LONG)
SCHEDULERS = ("", "tcp://", "nowhere", "tcp://127.0.0.1:x", "[/red]")
JOURNALS = ("-", "", "folder.json", "text.json", "binary.json", "none/x.json", f"{LONG}.json", "none\0.json", "net.xml")


def _with(option: str, values, *others: str) -> list[list[str]]:
    return [["net.xml", *others, f"{option}={value}"] for value in values]


def _in_turn(option: str, values, *others: str) -> list[list[str]]:
    """For options of one dash, whose value is an argument of its own."""
    return [["net.xml", *others, option, value] for value in values]


_MODELS = [[name] for name in MODELS]
_OWN = [f"own{number}.toml" for number in range(len(OWN_TRANSFORMATIONS))]
_COMMON = [
    *(*_with("--device", DEVICES), *_with("--config", CONFIGS)),
    *_with("--transformations", ("", "acme", "os:system", "[/red]", "\x1b[2J", LONG)),
]
_JSON = _with("--json", OUTPUTS)
_DATA = _with("--input", DATA)
_ISA = _with("--isa", NAMES)
_VIRTUAL = [*_with("--virtual", (*NAMES, "xelp")), *_with("--virtual", NAMES, "--device=GPU")]


def _shared(*others: str) -> list[list[str]]:
    """Workers and journals that are none, beside ``others``."""
    options = (("--workers", ("0", "-1")), ("--scheduler", SCHEDULERS), ("--resume", JOURNALS))
    return [[*others, f"{option}={value}"] for option, values in options for value in values]


CASES = {
    "run": [*_MODELS, *_COMMON, *_JSON, *_DATA, *_ISA, *_VIRTUAL, *_with("--float", MODELS[:15])],
    "explain": [*_MODELS, *_COMMON, *_JSON, *_ISA, *_VIRTUAL, *_with("--layer", NAMES)],
    "report": [
        *(*_COMMON, *_ISA, *_VIRTUAL, *_shared("net.xml"), *_shared("net.xml", "net.xml", "-o", "out")),
        ["net.xml", "net.xml", "net.xml"], ["net.xml", "net.xml", "net.xml", "-o", "net.xml"],
        ["net.xml", "net.xml", "--output=-"],
        *(*_MODELS, *_JSON, *_DATA, *_with("--csv", OTHER_OUTPUTS), *_with("--output", OTHER_OUTPUTS)),
    ],
    "check": [
        *(*_MODELS, *_COMMON, *_JSON, *_DATA[:4], *_with("--save-baseline", OTHER_OUTPUTS), *_with("--save-counters", OTHER_OUTPUTS)),
        *(*_with("--baseline", BASELINES), *_with("--expect", EXPECTED), *_with("--counters", COUNTERS, "--expect=u8:MatMul")),
        *([name] for name in CONFIGS if name.endswith(".toml")),
        *([f"fleet{number}.toml"] for number in range(len(FLEETS))),
        *(["fleet0.toml", f"--junit={name}"] for name in OTHER_OUTPUTS),
        *(*_ISA, *_VIRTUAL, *_shared("net.xml"), *_shared("one.toml")),
    ],
    "compare": [
        *(*_MODELS, *_COMMON, *_JSON, *_DATA, *_with("--float", MODELS[:15])),
        *(*_with("--samples", ("0", "-1")), *_with("--layers", ("0", "-5"))),
        *(*_VIRTUAL, *_shared("net.xml"), *_with("--threads", ("0", "-1"))),
    ],
    "complete": [
        *([*each, "-o", "out.xml", "-i", "shape.npz"] for each in (*_MODELS, *_COMMON, *_JSON, *_with("-f", MODELS[:15]))),
        *([*each, "-o", "out.xml"] for each in _DATA),
        *(["net.xml", "-i", "shape.npz", "-o", name] for name in IR), *_shared("net.xml", "-i", "shape.npz", "-o", "out.xml"),
        *(["net.xml", "-i", "shape.npz", "-o", "out.xml", f"--{name}={value}"] for name, values in LIMITS.items() for value in values),
    ],
    "bench": [
        *(*_MODELS, *_COMMON, *_JSON, *_DATA, *_with("--against", MODELS[:16]), *_in_turn("-t", ("0", "-1", "nan", "inf"))),
        *_in_turn("-nstreams", ("", "1.5", "AUTO ", "-2", "[/red]", "9" * 30)),
        *([], *(["-m", *each] for each in _MODELS), *_shared("net.xml"), *_shared("net.xml", "float.xml")),
        *(*_in_turn("-niter", ("0", "-1")), *_in_turn("-report_folder", ("-", "net.xml", LONG, "net.xml/x", "none\0"))),
    ],
    "verify": [
        *(*_MODELS, *_COMMON, *_JSON, *_DATA, *_with("--against", MODELS[:16]), *_with("--layers", ("0", "-1"))),
        *(*_ISA, *_VIRTUAL),
        *_with("--method", ("", "tensorrt", "[/red]")),
    ],
    "transform": [
        *([*each, "-o", "out.xml"] for each in (*_MODELS, *_COMMON, *_JSON, *_VIRTUAL, *_with("--config", _OWN))),
        *(["net.xml", "-o", name] for name in IR),
        *([*each, "-o", "out.xml", "--tune"] for each in (*_MODELS, *_COMMON, *_JSON, *_with("--device", NOT_THIS_CPU))),
        *(["net.xml", "-o", name, "--tune"] for name in IR),
        ["net.xml", "-o", "out.xml", "--tune", "--virtual=xelp"],
    ],
    "fuse": [
        *([name, "-o", "out.xml"] for name in MODELS if name != "float.xml"), *(["float.xml", "-o", name.replace("net.", "float.")] for name in IR),
        *(["float.xml", "-o", "out.xml", f"--json={name}"] for name in OUTPUTS),
        *(["float.xml", "-o", "out.xml", f"--value={value}"] for value in VALUES),
    ],
}  # fmt: skip


for command in ("run", "report", "compare"):
    CASES[command].append(["net.xml", "--float=levels.xml"])
for command in ("run", "explain", "report", "check", "compare", "bench", "verify"):
    CASES[command].append(["levels.xml"])  # can be transformed, and no device compiles it


def test_each_command_has_its_cases():
    assert set(CASES) == set(cli.COMMANDS)
    assert all(len(cases) >= 25 for cases in CASES.values())


@pytest.mark.parametrize(
    ("command", "arguments"),
    [(command, arguments) for command, cases in CASES.items() for arguments in cases],
    ids=lambda value: " ".join(map(ascii, value))[:80] if isinstance(value, list) else value,
)
def test_one_sentence_and_status_2(command, arguments, folder, capfd):
    before = {path: path.lstat().st_mtime_ns for path in folder.iterdir()}
    assert cli.main([command, *arguments]) == 2
    shown = capfd.readouterr()  # what libraries print, too
    assert shown.out == ""
    assert shown.err.startswith("ovlpt: ")
    assert shown.err.count("\n") == 1
    assert len(shown.err) < 1000
    assert {path: path.lstat().st_mtime_ns for path in folder.iterdir()} == before
