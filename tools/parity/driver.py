"""The native pass with any restrictions: a small C++ program, compiled once for each installed OpenVINO."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

import openvino

from ovlpt.config import Params, PluginConfig, PrecisionsRestriction, QuantizationGranularityRestriction
from ovlpt.openvino_api import Core, Model, Node
from ovlpt.operations import OPERATIONS, as_native
from ovlpt.trace import InputError

_SOURCE = Path(__file__).with_name("driver.cpp")
# Classes that early releases do not have, by the macro under which the driver uses them.
_SINCE = {"HAS_FLOAT8_CACHE": b"KVCacheConcat", "HAS_STRIPPING": b"FQStrippingTransformation"}


class NoCompiler(InputError):
    """This machine has no g++."""


class NativePassFails(InputError):
    """The native pass itself throws, or ends its process, on a model that it could read. ``transformation``: in which of its
    own, where it says so.
    """

    def __init__(self, sentence: str, transformation: str = ""):
        super().__init__(sentence)
        self.transformation = transformation


@cache
def core() -> Core:
    """A core that reads type-relaxed operations."""
    result = Core()
    result.get_property("CPU", "FULL_DEVICE_NAME")
    return result


@cache
def program() -> Path:
    """The compiled driver, built into the cache directory ($XDG_CACHE_HOME/ovlpt) where it is not there yet.

    Raises `NoCompiler` without g++, `InputError` when the compilation fails.
    """
    compiler = shutil.which("g++")
    if compiler is None:
        raise NoCompiler(
            "the native pass is driven by a C++ program and there is no g++; install one, or trace a stock compile"
        )
    root = Path(openvino.__file__).parent
    library = next((root / "libs").glob("libopenvino.so.*"))
    key = hashlib.sha256(_SOURCE.read_bytes() + f"{openvino.__version__} {library}".encode()).hexdigest()[:16]
    cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    target = cache_home / "ovlpt" / f"native-pass-{key}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            built = Path(folder) / "driver"
            text = library.read_bytes()
            new_strings = b"__cxx11" in text  # which of the two string layouts the wheel was built with
            defined = [f"-D{macro}" for macro, name in _SINCE.items() if name in text]
            command = [
                compiler, "-std=c++17", "-O1", f"-D_GLIBCXX_USE_CXX11_ABI={int(new_strings)}", *defined, "-I", str(root / "include"),
                str(_SOURCE), "-o", str(built), str(library),
                f"-Wl,-rpath,{root / 'libs'}", "-Wl,--allow-shlib-undefined",
            ]  # fmt: skip
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                raise InputError(f"g++ cannot build the driver of the native pass: {result.stderr.strip()[-400:]}")
            built.replace(target)
    return target


def run_native(
    model: Model,
    precision_restrictions: Sequence[PrecisionsRestriction] = (),
    quantization_restrictions: Sequence[QuantizationGranularityRestriction] = (),
    params: Params | None = None,
    disabled: Iterable[str] = (),
    callbacks: Mapping[str, Callable[[Node], object]] = MappingProxyType({}),
) -> Model:
    """The model after OpenVINO's own pass; ``model`` itself stays as it is.

    Restrictions that are functions cannot be handed over; of callbacks those that the driver has a counterpart of. Raises
    `NativePassFails` where the pass fails, `InputError` where the driver does.
    """
    directives = "\n".join(
        [
            *map(_precision, filter(_is_native, precision_restrictions)),
            *map(_granularity, filter(_is_native, quantization_restrictions)),
            *_params(params or Params()),
            *(f"disable {name}" for name in disabled),
            *(f"callback {name} {callback.__name__}" for name, callback in callbacks.items()),
        ]
    )
    return _run(model, directives)


def strip_native(model: Model, levels: int, need_weights_adjustment: bool = False) -> Model:
    """The model after OpenVINO's own `FQStrippingTransformation`; ``model`` itself stays as it is."""
    return _run(model, f"strip {levels} {int(need_weights_adjustment)}")


def float8_cache_native(model: Model) -> Model:
    """The model after OpenVINO's own passes that keep a cache in f8 (2026); ``model`` itself stays as it is."""
    return _run(model, "float8_cache")


def _run(model: Model, directives: str) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.xml", Path(folder) / "after.xml"
        openvino.serialize(model, before)
        result = subprocess.run([program(), before, after], input=directives, capture_output=True, text=True)
        if "the pass begins" in result.stdout and "the pass ends" not in result.stdout:
            why = _why(result)
            transformation = re.match(r"(\w+): ", why)
            raise NativePassFails(f"the native pass fails: {why}", transformation[1] if transformation else "")
        if result.returncode or not after.exists():
            raise InputError(f"the driver of the native pass fails: {_why(result)}")
        return _loaded(after)


def _why(result: subprocess.CompletedProcess[str]) -> str:
    """The pass and the last sentence of an error, or the signal that ended the process."""
    transformations = re.findall(r"\[(\w+)\] END", result.stderr)
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    last = lines[-1].split("CALLBACK HAS THROWN: ")[-1] if lines else signal.Signals(-result.returncode).name
    return f"{transformations[-1]}: {last}" if transformations else last


def run_native_with(config: PluginConfig, model: Model) -> Model:
    """As `run_native`, with all of a plugin's settings."""
    return run_native(
        model,
        config.precision_restrictions,
        config.quantization_restrictions,
        config.params,
        config.disabled,
        config.callbacks,
    )


def _loaded(path: Path) -> Model:
    """The model, read whole: its file may go."""
    return core().read_model(path.read_bytes(), path.with_suffix(".bin").read_bytes())


def _is_native(restriction: PrecisionsRestriction | QuantizationGranularityRestriction) -> bool:
    """Whether the native library has a rule for the operation."""
    return as_native(OPERATIONS[restriction.operation]).has_rule


def _precision(restriction: PrecisionsRestriction) -> str:
    if callable(restriction.by_ports):
        raise InputError(
            f"the restriction of {restriction.operation} is a function; the native pass takes plain lists here"
        )
    groups = (f"{','.join(map(str, ports))}:{','.join(types)}" for ports, types in restriction.by_ports)
    return " ".join(["precision", restriction.operation, *groups])


def _granularity(restriction: QuantizationGranularityRestriction) -> str:
    ports = (f"{port}" if granularity == "per_tensor" else f"{port}:" for port, granularity in restriction.by_port)
    return " ".join(["granularity", restriction.operation, *ports])


def _params(params: Params) -> list[str]:
    return [
        f"update {int(params.update_precisions)}",
        f"deq {params.deq_precision}",
        f"default {','.join(params.default_precisions)}",
        f"reshape {int(params.reshape_ignore_per_tensor_quantization_check)}",
    ]
