"""How far outputs are from the simulation's, and what counts as wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ovlpt.openvino_api import Output
from ovlpt.operations.families import REARRANGES

BELOW = 3.0  # dB
ENOUGH = 40.0  # dB
CHANCE = 10.0  # dB: what a network may be farther than the simulation moves
POOR = 10.0  # dB: an error of a third of the signal


class Verdict(StrEnum):
    """How near ovlpt is to the simulation."""

    NEAR = "as near"  # as stock, or near enough
    NEARER = "nearer"  # than stock
    BELOW = "below"  # stock, by too much
    FAR = "far"  # from what roundings may do, as stock is
    WRONG = "wrong"  # another shape, no finite number, other integers, or it does not run

    @property
    def fails(self) -> bool:
        return self in (Verdict.BELOW, Verdict.FAR, Verdict.WRONG)


@dataclass(frozen=True, slots=True)
class OutputNumbers:
    """One output in one way of running. SQNR in dB against the simulation, infinite where nothing differs."""

    output: str
    form: str  # COMPILED or SAVED
    setting: str  # "f32", "f32, 1 thread", "bf16"
    inputs: str  # their shapes
    ovlpt: float
    stock: float | None  # None: the plugin does not run it
    verdict: Verdict
    text: str = ""  # what else there is to say

    def __str__(self) -> str:
        text = f'{self.ovlpt:.1f} dB against the simulation at the output "{self.output}"'
        return text if self.stock is None else f"{text}, the plugin's own LPT {self.stock:.1f} dB"

    @property
    def fails(self) -> bool:
        return self.verdict.fails

    def to_json(self) -> dict[str, object]:
        return {
            "output": self.output,
            "form": self.form,
            "setting": self.setting,
            "inputs": self.inputs,
            "ovlpt_db": _plain(self.ovlpt),
            "stock_db": None if self.stock is None else _plain(self.stock),
            "verdict": str(self.verdict),
            "text": self.text,
        }


@dataclass(frozen=True)
class Numbers:
    """What was compared. ``layer``: the first that goes wrong, "" where none does or it cannot be told. ``unknown``: the
    model has been transformed, and nothing tells whether its numbers are right.
    """

    records: tuple[OutputNumbers, ...]
    layer: str
    notes: tuple[str, ...]
    unknown: bool = False

    @property
    def ok(self) -> bool:
        return not self.unknown and not any(record.fails for record in self.records)

    @property
    def failures(self) -> list[OutputNumbers]:
        return [record for record in self.records if record.fails]

    @property
    def is_as_stock(self) -> bool:
        """Whether what fails is as wrong with the plugin's own LPT."""
        return all(record.verdict is Verdict.FAR for record in self.failures)

    @property
    def worst(self) -> OutputNumbers | None:
        """The record with the lowest SQNR; a failure first."""
        return min(self.records, key=lambda record: (not record.fails, record.ovlpt), default=None)

    def to_json(self) -> dict[str, object]:
        """Plain values for a file; an infinite SQNR is the text "inf"."""
        return {
            "ok": self.ok,
            "unknown": self.unknown,
            "records": [record.to_json() for record in self.records],
            "first_wrong_layer": self.layer,
            "notes": list(self.notes),
        }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


@dataclass
class Distance:
    """Energies of an output's values and of their error, over samples. ``floor``: differences up to it are none."""

    signal: float = 0.0
    noise: float = 0.0
    broken: str = ""  # what makes a distance meaningless
    floor: float = 0.0

    @classmethod
    def of(cls, reference: np.ndarray, value: np.ndarray) -> Distance:
        found = cls()
        found.add(reference, value)
        return found

    def add(self, reference: np.ndarray, value: np.ndarray) -> None:
        if reference.shape != value.shape:
            self.broken = self.broken or f"the shape is {list(value.shape)}, not {list(reference.shape)}"
        elif not np.issubdtype(reference.dtype, np.floating):
            self.signal += 1
            differing = int((reference != value).sum())
            self.noise += differing / max(reference.size, 1)
        else:
            finite = np.isfinite(reference)
            same = np.where(np.isnan(reference), np.isnan(value), reference == value)
            if not (np.isfinite(value) if finite.all() else np.where(finite, np.isfinite(value), same)).all():
                self.broken = self.broken or "some numbers are finite in only one of the two"
                return
            r, v = reference[finite].astype(np.float64), value[finite].astype(np.float64)
            self.signal += float((r**2).sum())
            difference = r - v
            self.noise += float((difference[np.abs(difference) > self.floor] ** 2).sum())

    @property
    def sqnr(self) -> float:
        if self.broken:
            return -math.inf
        if self.noise == 0:
            return math.inf
        if self.signal == 0:  # zeros that are zeros but for the rounding of floats
            return math.inf if self.noise < 1e-12 else -math.inf
        return 10 * math.log10(self.signal / self.noise)


def resolution(output: Output) -> float:
    """What no reader of an output can see: half a step of f32 at 1 in probabilities of a Sigmoid, all of which may be
    1e-9 where nothing is found, and no two networks agree on such numbers. 0 of other outputs.
    """
    node = output.get_node()
    while node.get_type_name() in REARRANGES | {"Convert"}:
        node = node.input_value(0).get_node()
    return 2.0**-24 if node.get_type_name() == "Sigmoid" else 0.0


def verdict(ovlpt: float, stock: float | None, broken: bool = False) -> Verdict:
    """By the rule of the gate. Without ``stock`` ovlpt has to be near enough by itself."""
    if broken:
        return Verdict.WRONG
    if ovlpt >= ENOUGH:
        return Verdict.NEARER if stock is not None and stock < min(ENOUGH, ovlpt - BELOW) else Verdict.NEAR
    if stock is None or ovlpt < stock - BELOW:
        return Verdict.BELOW
    return Verdict.NEARER if ovlpt > stock + BELOW else Verdict.NEAR
