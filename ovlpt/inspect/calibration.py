"""Ranges of data for `Advice`: what an inserted FakeQuantize has to cover.

Min-max covers every value that was seen; a quantile clips the rarest, so that the steps between the others are finer.
Of the two, the one whose grid has the smaller mean squared error on the values that were seen is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from ovlpt.device.states import anew
from ovlpt.graph.grafting import end_in
from ovlpt.inspect.advice import Advice, interval
from ovlpt.inspect.float_model import simulate
from ovlpt.low_precision import as_defined
from ovlpt.openvino_api import Core, Model, Output, opset1
from ovlpt.trace import InputError

QUANTILES = (1e-4, 1e-3)  # parts that are cut off at each end
_KEPT = 1 << 14  # values of a tensor in one sample, evenly spaced


def calibrate(
    model: Model,
    advices: Iterable[Advice],
    samples: Iterable[Sequence[np.ndarray]],
    core: Core,
    quantiles: Sequence[float] = (),
) -> dict[str, tuple[float, float]]:
    """The range of what each of ``advices`` quantizes, by `Advice.measured`, over samples of one array per input.

    ``quantiles``: fractions of the values, 0 to 1, that may be clipped at each end if that makes the error of 256 levels
    smaller; if empty, the smallest and the largest value, of those that are finite. Advice that does not fit the model
    is left out, and what is never finite.
    """
    model, names = as_defined(model.clone()), set()
    for advice in advices:
        if advice.measured is not None and advice.measured not in names:
            names.add(advice.measured)
            with suppress(InputError):  # said by `apply`
                advice.prepare(model)
    outputs = [
        (node.get_friendly_name(), value)
        for node in model.get_ordered_ops()
        if node.get_friendly_name() in names
        for value in node.outputs()
    ]
    if not outputs:
        return {}
    seen = _seen(model, [value for _, value in outputs], samples, core)
    found: dict[str, list[_Seen]] = {}
    for (name, _), values in zip(outputs, seen, strict=True):
        found.setdefault(name, []).append(values)
    joined = {name: _Seen.joined(values) for name, values in found.items()}
    return {name: each.range(quantiles) for name, each in joined.items() if each.low <= each.high}


class _Seen:
    """The ends of a tensor's values, and some of them."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf
        self.values: list[np.ndarray] = []

    def add(self, values: np.ndarray) -> None:
        values = values[np.isfinite(values)]
        if values.size:
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
            self.values.append(np.array(values.ravel()[:: -(-values.size // _KEPT)]))

    @classmethod
    def joined(cls, parts: Sequence[_Seen]) -> _Seen:
        made = cls()
        made.low, made.high = min(part.low for part in parts), max(part.high for part in parts)
        made.values = [values for part in parts for values in part.values]
        return made

    def range(self, quantiles: Sequence[float]) -> tuple[float, float]:
        candidates = [(self.low, self.high)]
        if quantiles and self.values:
            values = np.concatenate(self.values)
            for part in quantiles:
                low, high = np.quantile(values, (part, 1 - part))
                candidates.append((max(float(low), self.low), min(float(high), self.high)))
            return min(candidates, key=lambda ends: _error(values, *ends))
        return candidates[0]


def _error(values: np.ndarray, low: float, high: float) -> float:
    """Mean squared error of 256 levels."""
    if not low < high:
        return np.inf
    low, high = interval(low, high, zero_point=True)
    step = (high - low) / 255
    return float(np.mean((np.clip(np.round(values / step) * step, low, high) - values) ** 2))


def _seen(model: Model, outputs: Sequence[Output], samples: Iterable[Sequence[np.ndarray]], core: Core) -> list[_Seen]:
    """Of a model that is the caller's to change; each sample begins its variables anew."""
    ends = [opset1.convert(value, "f32").output(0) for value in outputs]
    request = simulate(end_in(model, ends), core).create_infer_request()
    seen = [_Seen() for _ in outputs]
    for sample in samples:
        anew(request, list(sample))()
        for place, each in enumerate(seen):
            each.add(request.get_output_tensor(place).data)
    return seen
