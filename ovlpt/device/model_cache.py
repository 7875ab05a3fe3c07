"""Transformed models that are kept beside what the plugin caches, so that each is transformed once.

An entry is a folder ``ovlpt-KEY`` with the IR, the properties it is compiled with, and the digest of both. It is written
aside and renamed: it is whole or not there, and does not change afterwards. One with another digest is made anew.
Files that have not changed since they were read are not read again for it (`ovlpt.device.digests`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path

import openvino

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device import this_cpu
from ovlpt.device.digests import digest, kept_digest
from ovlpt.device.saving import save_model
from ovlpt.errors import InputError, warn
from ovlpt.openvino_api import CompiledModel, Core, Model

_PACKAGE = Path(__file__).parents[1]
_CPU = Path("/proc/cpuinfo")
_DECIDING = ("flags", "Features", "model name", "CPU part")  # its lines that tell processors apart
_LIMITS = ("OV_CPU_", "ONEDNN_", "DNNL_")  # environment variables that limit instruction sets
_MODEL, _WEIGHTS, _PROPERTIES, _DIGEST = "model.xml", "model.bin", "properties", "digest"


class ModelCache:
    """What is kept in ``folder`` under a ``key`` that `key_of` made."""

    def __init__(self, folder: str | Path, key: str):
        self._folder = Path(folder)
        self._entry = self._folder / f"ovlpt-{key}"

    def load(self, compile_model: Callable[[str, dict[str, object]], CompiledModel]) -> CompiledModel | None:
        """What ``compile_model`` makes of the kept model's path and properties; None where none is kept whole."""
        if not self._is_whole():
            return None
        with suppress(OSError, ValueError, RuntimeError):  # another process has taken it away meanwhile
            return compile_model(str(self._entry / _MODEL), json.loads((self._entry / _PROPERTIES).read_text()))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process compiles meanwhile what shares this folder: of two at once one may read what the other's
        plugin has half written, wrong numbers or an exception, with the plugin's own LPT too. Not on Windows.
        """
        with ExitStack() as stack:
            with suppress(ImportError, OSError):  # as where nothing can be kept
                import fcntl

                self._folder.mkdir(parents=True, exist_ok=True)
                fcntl.flock(stack.enter_context((self._folder / "ovlpt.lock").open("w")), fcntl.LOCK_EX)
            yield

    def keep(self, model: Model, properties: Mapping[str, object]) -> None:
        """Write the entry. Where that fails nothing is kept, and a warning says why."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder, prefix=".ovlpt-") as aside:
                new = Path(aside, "new")
                new.mkdir()
                save_model(model, new / _MODEL)
                (new / _PROPERTIES).write_text(json.dumps(dict(properties)))
                (new / _DIGEST).write_text(digest(_of_entry(new)))
                if self._entry.exists() and not self._is_whole():
                    self._entry.rename(Path(aside, "old"))
                try:
                    new.rename(self._entry)
                except OSError:
                    if not self._is_whole():  # then another process was faster
                        raise
        except (OSError, InputError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            warn(f'the transformed model is not kept in "{self._folder}": {reason}')

    def _is_whole(self) -> bool:
        try:
            return kept_digest(_of_entry(self._entry), self._folder) == (self._entry / _DIGEST).read_text()
        except (OSError, ValueError):
            return False


def key_of(
    model: Model | str | Path,
    read: Callable[[str | Path], Model],
    core: Core,
    device: str,
    config: PluginConfig | None,
    folder: str | Path,
    **settings: object,
) -> str | None:
    """The digest of all that a transformed model depends on; None where there is none, as of a caller's functions.

    That is the content of ``model``, ``config`` and ``settings``, the content of this package, the OpenVINO, and what
    decides how the machine answers where `plugin_config` asks it. ``read``: for files of formats that lie in more files
    than one. ``folder``: where digests are kept.
    """
    if config is not None and config.transformations:
        return None  # code of another package
    try:
        facts = {
            "config": _described(config),
            "settings": settings,
            "machine": [machine(core, each) for each in plugin_config.physical_devices(core, device)],
            "package": _content_of_package(Path(folder)),
            "openvino": openvino.get_version(),
            "model": _content(model, read, Path(folder)),
        }
    except (_NoContentError, OSError):
        return None
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class _NoContentError(Exception):
    """A value whose content another process could not compare."""


def _described(value: object) -> object:
    """A value of the configuration in terms of JSON. A function of this package is as good as its name."""
    if is_dataclass(value):
        return [type(value).__name__, *(_described(getattr(value, each.name)) for each in fields(value))]
    if isinstance(value, Mapping):
        return [[_described(key), _described(each)] for key, each in value.items()]
    if isinstance(value, (tuple, list)):
        return [_described(each) for each in value]
    if callable(value):
        module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
        if module.split(".")[0] == "ovlpt" and getattr(sys.modules.get(module), name, None) is value:
            return f"{module}.{name}"
    elif value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise _NoContentError


def machine(core: Core, device: str) -> object:
    """What decides how the probes of both modules `this_cpu` end, cheaper than they are."""
    kind = plugin_config.kind(device)
    names = (core.get_property(device, each) for each in ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES"))
    found = [kind, *(sorted(each) if isinstance(each, list) else str(each) for each in names)]
    if kind != "CPU":
        return found
    if not _CPU.exists():
        probed = plugin_config.this_cpu
        of_layers = (
            this_cpu.gathers_strides,
            this_cpu.has_vnni_of_512_bits,
            this_cpu.multiplies_groups_by_gemm,
            this_cpu.multiplies_groups_wrongly,
            this_cpu.reads_few_channels_slowly,
        )
        return [*found, probed.takes_signed_activations(), probed.multiplies_slowly(), *(each() for each in of_layers)]
    lines = {line for line in _CPU.read_text().splitlines() if line.startswith(_DECIDING)}
    limits = {name: value for name, value in os.environ.items() if name.startswith(_LIMITS)}
    return [*found, sorted(lines), limits]


@functools.cache
def _content_of_package(folder: Path) -> str:
    """``folder``: where the digest is kept. To read all modules takes a tenth of a second load."""
    roots = (_PACKAGE, *plugin_config.__path__)
    return kept_digest(sorted(name for root in roots for name in _modules(os.fspath(root))), folder)


def _modules(folder: str) -> Iterator[str]:
    """The paths of all below ``folder``; `Path.rglob` takes eight times as long."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _modules(entry.path)


def _content(model: Model | str | Path, read: Callable[[str | Path], Model], folder: Path) -> str:
    if isinstance(model, (str, Path)):
        path = Path(model)
        if path.suffix == ".xml":
            weights = path.with_suffix(".bin")
            files = [path, weights] if weights.exists() else [path]
            return kept_digest([each.resolve() for each in files], folder)
        if path.suffix == ".tflite":
            return kept_digest([path.resolve()], folder)
        model = read(model)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in (_MODEL, _WEIGHTS)]
        try:
            openvino.serialize(model, *map(str, files))
        except RuntimeError as error:  # an operation of the caller's
            raise _NoContentError from error
        return digest(files)


def _of_entry(entry: Path) -> list[Path]:
    return [entry / name for name in (_MODEL, _WEIGHTS, _PROPERTIES)]
