"""A virtual GPU: the unmodified GPU plugin on a machine without one.

The plugin asks an OpenCL library for its device. Here that library is compiled from the C files of this folder, and
describes an Intel GPU. The plugin lists ``GPU``, runs its own passes, chooses its kernels and reports its execution graph.
There are two forms:

decide      every program builds, none runs. What to trust: whether a layer runs in int8. Kernel names and layouts may
            differ from a real device's. Output values mean nothing; the package never reports them.
execute     programs run on Intel's OpenCL runtime for CPUs (the extra ``gpu``), so that the numbers are those of the
            plugin's own kernels. Only on GPUs without matrix engines: for others (XMX: all but ``xelp`` and ``mtl``) oneDNN
            makes machine code. LSTM and GRU are oneDNN's on every GPU: it is told that the driver takes no machine code, and
            multiplies their matrices by its OpenCL programs.

Times mean nothing in either. With matrix engines the plugin would compile fused attention to machine code, which nothing
here can; `properties` turns that off, so attention appears as separate layers there.

The library is loaded into a process of its own (`ovlpt.device.subprocess_call`): a process has one OpenCL library, and a
real GPU must not be hidden from the caller.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from openvino import save_model

from ovlpt.choices import DP4A as DP4A
from ovlpt.choices import EXECUTABLE as EXECUTABLE
from ovlpt.choices import GPUS as GPUS
from ovlpt.choices import NO_INT8 as NO_INT8
from ovlpt.choices import XMX as XMX
from ovlpt.device import cache, subprocess_call
from ovlpt.device.execution_types import last_line
from ovlpt.openvino_api import RELEASE, Model
from ovlpt.trace import InputError

T = TypeVar("T")
NOTE = (
    "executed on this CPU: times mean nothing, and GPUs with matrix engines run other kernels, of which only the decisions "
    "can be checked"
)
NOT_EXECUTED = frozenset(((2025, 4),))  # releases whose plugin asks for memory that the runtime refuses
SINCE = {"nvl": (2026, 4)}  # OpenVINO; that of 2024.6 does not know the device

_FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-Wl,-soname,libOpenCL.so.1")
_SOURCES = {
    False: ("answers.c", "device.c", "memory.c", "programs.c", "runtime.c"),
    True: ("answers.c", "device.c", "execute.c"),
}
_RUNTIME = {"intel-opencl-rt": "libintelocl.so", "intel-cmplr-lib-rt": "libsvml.so", "tbb": "libtbb.so.12"}


def check_known(gpu: str, execute: bool = False) -> None:
    """Raise `InputError` for a GPU that is not in the table or too new, or whose kernels cannot be executed here."""
    if gpu not in GPUS:
        raise InputError(f'no virtual GPU "{gpu}"; there are {", ".join(GPUS)}')
    if SINCE.get(gpu, RELEASE) > RELEASE:
        installed, needed = (".".join(map(str, release)) for release in (RELEASE, SINCE[gpu]))
        raise InputError(f'the virtual GPU "{gpu}" needs OpenVINO {needed} or later, and {installed} is installed')
    if execute and RELEASE in NOT_EXECUTED:
        raise InputError(
            f"OpenVINO {'.'.join(map(str, RELEASE))} cannot execute a virtual GPU: its plugin asks for memory that Intel's "
            "OpenCL runtime for CPUs does not give; take another release, or leave execute out to see the decisions alone"
        )
    if execute and gpu not in EXECUTABLE:
        why = "has no int8" if GPUS[gpu] == NO_INT8 else "runs machine code of its matrix engines"
        raise InputError(
            f'the virtual GPU "{gpu}" {why}, so nothing of it can be executed here; {" and ".join(EXECUTABLE)} can be'
        )


def check_device(device: str) -> None:
    """Raise `InputError` where a virtual GPU is asked for and the device is another."""
    if device != "GPU":
        raise InputError(f'a virtual GPU needs the device "GPU", not "{device}"')


def check_computes(gpu: str, device: str, execute: bool, config: object) -> None:
    """Raise `InputError` for what cannot be asked of a virtual GPU that is to compute numbers."""
    check_device(device)
    if not execute:
        raise InputError(f'the virtual GPU "{gpu}" computes numbers only with execute=True')
    if config is not None:
        raise InputError("a PluginConfig cannot be passed to another process; leave it out")
    check_known(gpu, execute)


def properties(gpu: str) -> dict[str, object]:
    """Compile properties that a virtual GPU needs."""
    return {"GPU_ENABLE_SDPA_OPTIMIZATION": False} if GPUS[gpu] == XMX else {}


def environment(execute: bool) -> dict[str, str]:
    """Variables of the process that is to `load` a GPU.

    Raises `InputError` where the runtime that executes is not installed.
    """
    if not execute:
        return {}
    before = os.environ.get("LD_PRELOAD")  # OpenVINO brings an older TBB, which would be found first
    return {"LD_PRELOAD": f"{_runtime()['tbb']}{f':{before}' if before else ''}"}


def load(gpu: str, execute: bool = False) -> None:
    """Make ``gpu`` the device that the GPU plugin of this process finds. Once, before the plugin is first asked.

    ``execute``: with kernels that run, in a process that has the variables of `environment`. Raises `InputError` for a
    GPU that is not in the table, and on a machine that cannot build the library or lacks the runtime.
    """
    check_known(gpu, execute)
    os.environ["OVLPT_VIRTUAL_GPU"] = gpu
    built = library(execute)
    if execute:
        libraries = _runtime()
        runtime = libraries["intel-opencl-rt"]
        os.environ["OVLPT_OPENCL_RUNTIME"] = str(runtime)
        os.environ["OVLPT_KERNELS"] = str(_kernels(built, libraries))
        try:
            ctypes.CDLL(str(runtime))
        except OSError as error:
            raise InputError(f"the OpenCL runtime for CPUs cannot be loaded: {error}") from error
    ctypes.CDLL(str(built), mode=ctypes.RTLD_GLOBAL)


def call(gpu: str, execute: bool, function: Callable, *arguments: object, **keywords: object) -> Any:
    """What ``function`` returns in a process of its own whose GPU is virtual. Models come to it as paths of files.

    The function is found by its name; what it takes and returns can be pickled. Raises `InputError` as `load`.
    """
    check_known(gpu, execute)
    library(execute)
    with tempfile.TemporaryDirectory() as folder:

        def handed(value: object, name: str) -> object:
            if not isinstance(value, Model):
                return value
            path = str(Path(folder, f"{name}.xml"))
            save_model(value, path, compress_to_fp16=False)
            return path

        task = functools.partial(
            function,
            *(handed(value, str(number)) for number, value in enumerate(arguments)),
            **{name: handed(value, name) for name, value in keywords.items()},
        )
        return subprocess_call.call(loaded, gpu, execute, task, environment=environment(execute))[0]


def loaded(gpu: str, execute: bool, task: Callable[[], T]) -> T:
    """What ``task`` returns in this process, which gets the GPU; once (`load`)."""
    load(gpu, execute)
    return task()


def _runtime() -> dict[str, Path]:
    """By distribution, the library of it that the runtime needs."""
    found = {}
    for name, library_name in _RUNTIME.items():
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            files = []
        paths = [Path(file.locate()).resolve() for file in files if file.name == library_name]
        if not paths or not paths[0].exists():
            raise InputError(
                f'executing a virtual GPU needs Intel\'s OpenCL runtime for CPUs, and "{name}" is not installed; install '
                'ovlpt with the extra "gpu": pip install "ovlpt[gpu]"'
            )
        found[name] = paths[0]
    return found


def _kernels(built: Path, runtime: dict[str, Path]) -> Path:
    """The folder of built programs: of one library, one runtime and one kind of CPU, whose machine code they hold.

    ``runtime``: as `_runtime` says. What is installed anew, or elsewhere, in the same version finds the same folder.
    """
    facts = [built.parent.name]
    facts += [f"{name} {metadata.version(name)} {path.stat().st_size}" for name, path in runtime.items()]
    text = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    facts += [line for line in text.splitlines() if line.startswith(("model name", "flags"))]
    folder = cache.folder() / f"kernels-{hashlib.sha256(chr(10).join(facts).encode()).hexdigest()[:16]}"
    cache.own_folder(folder)
    return folder


def library(execute: bool = False) -> Path:
    """The compiled library, in the user's cache folder; built at the first call after its source has changed.

    Raises `InputError` on a machine that cannot build it, and for a cache folder that others can write to.
    """
    if sys.platform != "linux":
        raise InputError("a virtual GPU needs Linux, whose loader lets a process bring its own OpenCL library")
    if execute and platform.machine() != "x86_64":
        raise InputError("executing a virtual GPU needs an x86-64 CPU, which Intel's OpenCL runtime is for")
    here = Path(__file__).parent
    sources = [here / name for name in _SOURCES[execute]]
    content = b"".join(source.read_bytes() for source in [*sources, *sorted(here.glob("*.h"))])
    key = hashlib.sha256(content + " ".join(_FLAGS).encode()).hexdigest()
    return cache.file(f"virtual-gpu-{key[:16]}", "libOpenCL.so.1", functools.partial(_build, sources))


def _build(sources: list[Path], target: Path) -> None:
    candidates = (os.environ.get("CC"), "cc", "gcc", "clang")
    compiler = next((found for name in candidates if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise InputError(
            "a virtual GPU needs a C compiler once, and there is none of cc, gcc and clang; install one, or set CC"
        )
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(target), *map(str, sources), "-ldl"], capture_output=True, text=True
    )
    if done.returncode or not target.exists():
        said = (
            last_line(done.stderr) if done.stderr.strip() else f"it ends with status {done.returncode} and says nothing"
        )
        raise InputError(f'the C compiler "{compiler}" cannot build the virtual GPU: {said}')
