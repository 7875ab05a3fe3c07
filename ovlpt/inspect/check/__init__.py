"""Does each layer run in the expected precision (of a list, of the plugin's own LPT, or of an earlier run), and
are the numbers right (`ovlpt.inspect.numbers`)?

A precision field alone can lie, so a layer counts as int8 if it reads u8 or i8 *and* its kernel's name says so.
Layers of two compiled models are the same layer if they hold the same operations of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import openvino

from ovlpt import plugin_config
from ovlpt.choices import OVLPT, STOCK
from ovlpt.config import PluginConfig, other_names
from ovlpt.device import ExecutionTypes, virtual_gpu
from ovlpt.device.counters import read_counters
from ovlpt.inspect.check.baseline import other_settings, read_baseline
from ovlpt.inspect.check.execution import Asked, Executed, execute_anywhere
from ovlpt.inspect.check.expectations import compare_expected, expectations
from ovlpt.inspect.check.layers import Difference, LayerPrecision, compare
from ovlpt.inspect.numbers import UNKNOWN
from ovlpt.inspect.numbers.distance import Numbers
from ovlpt.openvino_api import Core, Model
from ovlpt.precisions import INT8
from ovlpt.trace import InputError


@dataclass(frozen=True)
class Check:
    """What `check` found."""

    question: str  # "int8:Convolution,MatMul", "against the plugin's own LPT", "against base.json"; "" for none
    settings: Mapping[str, str | None]  # device, name, virtual, isa, openvino; all None for counters
    layers: ExecutionTypes
    compared: tuple[LayerPrecision, ...]  # the layers that the question is about
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    baseline: Mapping[str, object]  # this run as something to compare with: plain values for a file
    numbers: Numbers | None = None  # None: not compared
    precisions: tuple[str, ...] = ()  # of floats, in which the layers were compared
    without_stock: str = (
        ""  # why the plugin with its own LPT does not compile the model; "" where it does, or is not asked
    )

    @property
    def ok(self) -> bool:
        """Whether every layer runs as expected, and the numbers are right; a layer that runs in int8 beyond that is not a
        failure. Numbers of a transformed model, which cannot be compared, are not known to be right.
        """
        right = self.numbers is None or self.numbers.ok
        return right and not any(difference.fails for difference in self.differences)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {
            "ok": self.ok,
            "question": self.question,
            "precisions": list(self.precisions),
            "without_stock": self.without_stock,
            **self.settings,
            "compared": [asdict(layer) for layer in self.compared],
            "differences": [asdict(difference) for difference in self.differences],
            "notes": list(self.notes),
            "numbers": None if self.numbers is None else self.numbers.to_json(),
        }


@other_names(plugin="config", device_name="device")
def check(
    model: Model | str | Path | None = None,
    device: str = "CPU",
    expect: str | Sequence[str] | None = None,
    against: str | None = None,
    baseline: str | Path | None = None,
    counters: str | Path | None = None,
    config: PluginConfig | str | Path | None = None,
    virtual: str | None = None,
    isa: str | None = None,
    core: Core | None = None,
    count: bool = False,
    numbers: bool = True,
    inputs: str | Path | Sequence[np.ndarray] | None = None,
    progress: Callable[[float], object] = lambda part: None,
    execute: bool = False,
    precision: str | None = None,
) -> Check:
    """Compile ``model`` with ovlpt and compare the precision of its layers with one of these:

    ``expect``: ``"int8:Convolution,MatMul"``, or several such texts: the precision of every layer of these operations.
    ``against="stock"``: what the plugin with its own LPT runs in int8, of convolutions, MatMuls and recurrent layers;
    where it cannot compile the model, a note says why.
    ``baseline``: a file with an earlier run (`Check.baseline`), of layers that compute. With none of them the layers
    are only read.

    ``counters``: check this report of benchmark_app (see `read_counters`); the model is then compiled only with the
    plugin's own LPT. ``virtual``: a GPU that this machine need not have (`ovlpt.device.virtual_gpu`; on XMX devices
    attention is not fused there); notes name kernels that keep sums of integers in half precision. ``isa``: limit the CPU
    to an instruction set (`ovlpt.device.instruction_sets`). Both run in a separate process, so ``config`` has to be the
    path of a file, or contain no functions of a script. ``count``: run on random inputs, for statuses and times. Floats
    are f32 on a CPU; if it uses another type for them by default, layers have to be in int8 with that type, too.

    ``numbers``: run ovlpt, the plugin's own LPT and the FakeQuantize simulation on the same ``inputs`` (a file or arrays,
    see `load_samples`; by default generated), and compare their outputs; there are none for counters, nor for a virtual
    GPU without ``execute``, which runs its kernels. This takes about six more compilations and some inferences.
    ``progress`` is called meanwhile with the part that is done, 0 to 1. ``precision``: the only type of floats to check,
    "f16", "bf16" or "f32".
    Raises `InputError` for anything unusable.
    """
    _check_question(
        {"expect": expect, "against": against, "baseline": baseline}, model is not None, counters is not None
    )
    wanted = expectations(expect) if expect is not None else {}
    recorded = read_baseline(baseline, device if counters is None else None) if baseline is not None else {}

    notes: list[str] = []
    variants = [OVLPT] * (counters is None) + [STOCK] * (against is not None)
    _check_execution(device, execute, virtual, precision)
    if execute:
        notes.append(virtual_gpu.NOTE)
    ask = _asked(inputs) if numbers else None
    if ask is not None and ((virtual is not None and not execute) or counters is not None):
        why = "a virtual GPU computes none without execute=True" if virtual is not None else "counters hold none"
        notes.append(f"{UNKNOWN}: {why}")
        ask = None
    executed = Executed("", {}, {})
    if variants:
        executed = execute_anywhere(
            model, device, variants, config, virtual, isa, core, count, notes, ask, progress, execute, precision,
            expect is not None,
        )  # fmt: skip
    notes += executed.warnings
    about = {"device": device, "name": executed.name, "virtual": virtual, "isa": isa}
    settings = {**about, "openvino": openvino.__version__}
    if counters is not None:
        executed = replace(executed, layers={**executed.layers, OVLPT: read_counters(counters)}, in_default=None)
        settings = dict.fromkeys(settings)
    found = executed.precisions(OVLPT)

    question, compared = "", found
    differences: Iterable[Difference] = ()
    if expect is not None:
        question = expect if isinstance(expect, str) else "; ".join(expect)
        compared, differences = compare_expected(wanted, found, executed)
    elif against is not None:
        question = "against the plugin's own LPT"
        compared, differences = executed.weighted(OVLPT), executed.against_stock()
        notes += executed.about_stock()
    elif baseline is not None:
        question = f"against {baseline}"
        notes += other_settings(recorded, settings) if counters is None else []
        differences = compare(recorded["layers"], found)
    differences = _with_default(list(differences), executed, wanted, against is not None)
    stored = {**settings, "layers": [asdict(layer) for layer in found]}
    answers = tuple(compared), tuple(differences), tuple(notes)
    return Check(
        question, settings, executed.layers[OVLPT], *answers, stored,
        executed.numbers, executed.computed_in, executed.without_stock,
    )  # fmt: skip


def _check_question(asked: Mapping[str, object], has_model: bool, has_counters: bool) -> None:
    """Raise `InputError` for more than one question, and for one that nothing given can answer."""
    names = [name for name, value in asked.items() if value is not None]
    if len(names) > 1:
        raise InputError(f"{' and '.join(names)} are two questions; ask one at a time")
    if asked["against"] not in (None, STOCK):
        raise InputError(
            f'cannot compare against "{asked["against"]}"; there is "{STOCK}", the plugin with its own LPT'
        )
    if not has_counters and not has_model:
        raise InputError("nothing to check: give a model, or a counters report of benchmark_app")
    if has_counters and asked["against"] and not has_model:
        raise InputError(f"counters are compared against {STOCK} with the model that they were recorded with; give it")


def _asked(inputs: str | Path | Sequence[np.ndarray] | None) -> Asked:
    """Numbers on these inputs; arrays as another process can have them."""
    if inputs is None or isinstance(inputs, (str, Path)):
        return Asked(inputs)
    return Asked([np.asarray(array) for array in inputs])


def _check_execution(device: str, execute: bool, virtual: str | None, precision: str | None) -> None:
    if execute and virtual is None:
        raise InputError("only the kernels of a virtual GPU can be executed this way; name a virtual GPU")
    floats = ("f16", "f32") if plugin_config.kind(device) == "GPU" else ("f16", "bf16", "f32")
    if precision is not None and precision not in floats:
        raise InputError(f'no precision "{precision}" of floats to check on {device}; there are {", ".join(floats)}')


def _with_default(
    differences: list[Difference], executed: Executed, wanted: Mapping[str, str], against: bool
) -> list[Difference]:
    """And what is to be int8 and is not with floats in the CPU's default type alone. What is to be a float is said of f32."""
    again = executed.in_default
    if again is None:
        return differences
    low = {operation: precision for operation, precision in wanted.items() if precision in ("int8", *INT8)}
    found = (
        compare_expected(low, again.precisions(OVLPT), again)[1] if low else again.against_stock() if against else []
    )
    known = {each.layer for each in differences}
    more = (each for each in found if each.fails and each.layer not in known)
    return [*differences, *(replace(each, setting=again.precision) for each in more)]
