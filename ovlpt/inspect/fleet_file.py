"""The gate of a fleet: models × devices × configurations × expectations, from a TOML file.

    [models]                      # a path, or a pattern whose files are called by their stems
    digits = "digits.xml"
    resnet = { path = "resnet50.xml", inputs = "images.npz" }

    [devices]
    here = {}
    avx2 = { isa = "avx2" }
    xelp = { device = "GPU", virtual = "xelp" }

    [configurations]              # without it: the device's own
    narrow = { config = "narrow.toml" }

    [expectations]
    stock = { against = "stock" }
    convolutions = { expect = ["int8:Convolution"], numbers = false }

    [[without]]                   # combinations that are left out; what is not named may be anything
    models = ["resnet"]
    devices = ["avx2"]

A row's keys are arguments of `ovlpt.check`; paths are relative to the file.
"""

from __future__ import annotations

import glob
import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ovlpt.choices import STOCK
from ovlpt.config import nearest
from ovlpt.files import read_text
from ovlpt.trace import InputError

Row = dict[str, Any]  # arguments of `check`

_KEYS: dict[str, dict[str, type]] = {  # section: the keys of its rows, and their types
    "models": {"path": str, "inputs": str},
    "devices": {"device": str, "virtual": str, "isa": str, "execute": bool},
    "configurations": {"config": str, "precision": str},
    "expectations": {"expect": list, "against": str, "baseline": str, "numbers": bool},
}
_WORDS = {str: "a text", bool: "true or false", list: "a list of texts"}
FILES = ("inputs", "config", "baseline")  # keys whose values are paths
_OWN: dict[str, dict] = {"own": {}}
_DEFAULTS: dict[str, dict[str, dict]] = {
    "devices": {"CPU": {}},
    "configurations": _OWN,
    "expectations": {STOCK: {"against": STOCK}},
}


@dataclass(frozen=True)
class Case:
    """One combination, by its names; ``options``: arguments of `check` besides the model."""

    model: str
    device: str
    configuration: str
    expectation: str
    path: Path
    options: Mapping[str, Any]

    @property
    def label(self) -> str:
        return f"{self.model} on {self.device}, {self.configuration}, {self.expectation}"


def load_fleet(path: str | Path) -> list[Case]:
    """The cases of a fleet file. Raises `InputError` that names the file, the row and what is wrong there."""
    text = read_text(path, "a TOML file with the models and devices to check", "the fleet ")
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f'"{path}" is not a TOML file: {error}') from error
    cases = list(_Reader(Path(path), content).cases())
    if not cases:
        raise InputError(f'"{path}" leaves no case to check; see its [[without]]')
    return cases


class _Reader:
    def __init__(self, path: Path, content: Mapping[str, Any]):
        self._path, self._content = path, content
        for section in content:
            if section not in (*_KEYS, "without"):
                self._fail(f'has no section "{section}"{nearest(section, (*_KEYS, "without"))}')
        self._rows = {section: self._section(section) for section in _KEYS}

    def cases(self) -> Iterator[Case]:
        without = self._without()
        for names in itertools.product(*self._rows.values()):
            named = dict(zip(_KEYS, names, strict=True))
            if any(all(named[key] in values for key, values in row.items()) for row in without):
                continue
            options: dict[str, Any] = {}
            for section, name in named.items():
                options |= self._rows[section][name]
            path = Path(options.pop("path"))
            model, device, configuration, expectation = names
            yield Case(model, device, configuration, expectation, path, options)

    def _section(self, section: str) -> dict[str, Row]:
        rows = self._content.get(section, _DEFAULTS.get(section))
        if not isinstance(rows, dict) or not rows:
            self._fail(f"names no {section}; write a section [{section}] with a row for each")
        read: dict[str, Row] = {}
        for name, row in rows.items():
            if section != "models":
                read[name] = self._row(section, name, row)
                continue
            for called, each in self._models(name, {"path": row} if isinstance(row, str) else row):
                if called in read:
                    self._fail(
                        f'names two models "{called}": {read[called]["path"]} and {each["path"]}; name each in a row'
                    )
                read[called] = each
        return read

    def _models(self, name: str, row: object) -> list[tuple[str, Row]]:
        """The row of a model, or those of all that its pattern names."""
        read = self._row("models", name, row)
        if "path" not in read:
            self._fail(f'has no path for the model "{name}"; give one')
        path = str(self._path.parent / read["path"])
        if not glob.has_magic(path) or Path(path).exists():
            return [(name, {**read, "path": path})]
        found = sorted(glob.glob(path))
        if not found:
            self._fail(f'names models as "{read["path"]}", and no file matches')
        return [(Path(each).stem, {**read, "path": each}) for each in found]

    def _row(self, section: str, name: str, row: object) -> Row:
        known = _KEYS[section]
        if not isinstance(row, dict):
            self._fail(f'has for "{name}" in [{section}] {row!r}; it must be a table as {{ {next(iter(known))} = … }}')
        for key, value in row.items():
            if key not in known:
                self._fail(f'has "{key}" for "{name}" in [{section}]{nearest(key, known)}')
            if type(value) is not known[key] or (known[key] is list and not _is_texts(value)):
                self._fail(f'has {key} = {value!r} for "{name}" in [{section}]; it must be {_WORDS[known[key]]}')
        return {key: str(self._path.parent / value) if key in FILES else value for key, value in row.items()}

    def _without(self) -> list[dict[str, list[str]]]:
        rows: Any = self._content.get("without", [])
        for row in rows if isinstance(rows, list) else [rows]:
            if not isinstance(rows, list) or not _names_some(row):
                self._fail(f"leaves out {row!r}; write [[without]] and lists of names of {', '.join(_KEYS)}")
            for key, names in row.items():
                for name in names:
                    if name not in self._rows[key]:
                        self._fail(f'leaves out "{name}" of {key}{nearest(name, self._rows[key])}')
        return rows

    def _fail(self, what: str) -> NoReturn:
        raise InputError(f'the fleet "{self._path}" {what}')


def _names_some(row: object) -> bool:
    """Whether a row of [[without]] has lists of names, by sections."""
    return bool(row) and isinstance(row, dict) and all(key in _KEYS and _is_texts(row[key]) for key in row)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
