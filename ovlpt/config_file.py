"""Settings of `LowPrecision` in a TOML file, and where in it something is wrong."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ovlpt import predicates
from ovlpt.config import Params, PluginConfig, Ports, PrecisionsRestriction, QuantizationGranularityRestriction, nearest
from ovlpt.files import read_text
from ovlpt.low_precision import PASSES
from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS
from ovlpt.own_transformations import Given, known, resolved
from ovlpt.precisions import INT8, NUMPY
from ovlpt.trace import InputError

_SECTIONS = ("name", "params", "precisions", "per_tensor", "disabled", "callbacks", "transformations")
_WHOLE = ("params", "precisions", "per_tensor")  # a file with one of these says all that a device can do
_PARAMS = tuple(field.name for field in fields(Params) if field.name != "native_only")
CALLBACKS: Mapping[str, Callable[[Node], bool]] = {
    name: getattr(predicates, name)
    for name in (
        "are_quantize_and_dequantize_supported_for_multiply",
        "are_quantize_and_dequantize_supported_for_subtract",
        "can_be_transformed_to_group_convolution",
        "is_asymmetric_on_weights",
        "is_asymmetric_quantization",
        "is_decompression_multiply",
        "is_dynamic_or_scalar",
        "marked_as_bias",
    )
}

Key = tuple[str, ...]


def load_config(path: str | Path, transformations: Sequence[Given] = ()) -> PluginConfig:
    """The settings in the TOML file at ``path``. ``transformations``: custom ones, whose names it may then use.

    Sections: ``[params]`` with the fields of `Params`; ``[precisions.OPERATION]`` with ports ("0", "0,1") and element
    types, and ``opset`` for one version only (empty: the operation is not quantized); ``per_tensor`` with
    operations and their ports (none: all); ``disabled``, a list of passes; ``callbacks`` with passes and the predicates
    that leave a node alone ("not ..." negates one); ``transformations``, a list of those that installed packages
    offer. A file with transformations and without the first three sections extends the settings of the device.

    Raises `InputError` with the file, the line, what is wrong there and what would be right.
    """
    path = Path(path)
    text = read_text(path, "a TOML file")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f'"{path}" is not a TOML file: {error}') from error
    except RecursionError as error:
        raise InputError(f'"{path}" is nested too deeply; settings need three levels') from error
    return _Reader(path, text).config(content, transformations)


class _Reader:
    """Turns parsed TOML into settings; errors name the line."""

    def __init__(self, path: Path, text: str):
        self.path, self.rows = path, text.splitlines()
        self.lines = dict(_keys(self.rows))
        self.passes = PASSES

    def config(self, content: Mapping[str, Any], given: Sequence[Given]) -> PluginConfig:
        self._known((), content, _SECTIONS, "section")
        offered = self._offered(content.get("transformations", []))
        own = self._at(("transformations",), lambda: resolved((*given, *offered)))
        self.passes = (*PASSES, *(kind.__name__ for kind in own))
        with known(own):
            return self._config(content, (*given, *offered))

    def _config(self, content: Mapping[str, Any], transformations: tuple[Given, ...]) -> PluginConfig:
        name = self._typed(("name",), content.get("name", self.path.stem), str, "a text")
        return PluginConfig(
            name,
            precision_restrictions=tuple(self._precisions(self._section(content, "precisions"))),
            quantization_restrictions=tuple(self._per_tensor(self._section(content, "per_tensor"))),
            params=self._params(self._section(content, "params")),
            disabled=tuple(self._disabled(content.get("disabled", []))),
            callbacks=dict(self._callbacks(self._section(content, "callbacks"))),
            transformations=transformations,
            extends_device=bool(transformations) and not any(section in content for section in _WHOLE),
        )

    def _offered(self, names: Any) -> list[str]:
        key = ("transformations",)
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            self._fail(
                key, f"transformations must be a list of the names under which packages offer them, not {names!r}"
            )
        for name in names:
            self._at(key, lambda: resolved(name))  # noqa: B023
        return names

    def _section(self, content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        return self._typed((name,), content.get(name, {}), dict, "a table")

    def _params(self, params: Mapping[str, Any]) -> Params:
        self._known(("params",), params, _PARAMS, "parameter")
        for name, value in params.items():
            key = ("params", name)
            if name == "default_precisions":
                self._types(key, value)
            elif name != "mat_mul_as_convolution":
                self._typed(key, value, *((str, "a text") if name == "deq_precision" else (bool, "true or false")))
            self._at(key, lambda: Params(**{name: value}))  # noqa: B023
        return Params(**params)

    def _precisions(self, operations: Mapping[str, Any]) -> Iterator[PrecisionsRestriction]:
        for operation, entries in operations.items():
            key = ("precisions", operation)
            entries = dict(self._typed(key, entries, dict, "a table of ports"))
            opset = entries.pop("opset", None)
            ports: dict[Ports, list[str]] = {}
            self._at(key, lambda: PrecisionsRestriction.create(operation))  # noqa: B023
            for port, types in entries.items():  # one at a time: an error then has its line
                entry: dict[Ports, list[str]] = {self._ports((*key, port), port): self._types((*key, port), types)}
                self._at((*key, port), lambda: PrecisionsRestriction.create(operation, entry))  # noqa: B023
                ports |= entry
            if opset is not None and opset not in OPERATIONS[operation].versions:
                self._fail(
                    (*key, "opset"),
                    f'{operation} has no rule in "{opset}"{nearest(str(opset), OPERATIONS[operation].versions)}',
                )
            yield PrecisionsRestriction.create(operation, ports, opset)

    def _ports(self, key: Key, ports: str) -> tuple[int, ...]:
        if not re.fullmatch(r"\d+(\s*,\s*\d+)*", ports):
            self._fail(key, f'"{ports}" is not a port; write a number, or several as "0,1"')
        return tuple(int(port) for port in ports.split(","))

    def _types(self, key: Key, types: Any) -> list[str]:
        if not isinstance(types, list) or not all(isinstance(each, str) for each in types):
            self._fail(key, f'element types must be a list such as ["u8", "i8"], not {types!r}')
        if not types:
            self._fail(key, f'"{key[-1]}" lists no element type; name one, or leave it out')
        for each in types:
            if each in NUMPY and each not in INT8:  # of others `Params` and restrictions say that there are none
                self._fail(key, f'no kernel reads "{each}" as low precision; give "u8" or "i8"', culprit=each)
        return types

    def _per_tensor(self, operations: Mapping[str, Any]) -> Iterator[QuantizationGranularityRestriction]:
        for operation, ports in operations.items():
            key = ("per_tensor", operation)
            if not isinstance(ports, list) or not all(type(port) is int for port in ports):
                self._fail(key, f"ports must be a list such as [0], not {ports!r}")
            yield self._at(key, lambda: QuantizationGranularityRestriction.create(operation, ports))  # noqa: B023

    def _disabled(self, names: Any) -> Iterator[str]:
        for name in self._typed(("disabled",), names, list, "a list of passes"):
            yield self._pass(("disabled",), name)

    def _callbacks(self, callbacks: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[Node], bool]]]:
        for name, asked in callbacks.items():
            key = ("callbacks", name)
            self._pass(key, name)
            asked = [asked] if isinstance(asked, str) else self._typed(key, asked, list, "a list of predicates")
            if not asked:
                self._fail(key, f"{name} has no predicate; name one, or leave it out")
            yield name, _any_of([self._predicate(key, each) for each in asked])

    def _predicate(self, key: Key, name: object) -> Callable[[Node], bool]:
        plain = str(name).removeprefix("not ").strip()
        if plain not in CALLBACKS:
            self._fail(key, f'no predicate "{name}"{nearest(plain, CALLBACKS)}', culprit=str(name))
        predicate = CALLBACKS[plain]
        return (lambda node: not predicate(node)) if name != plain else predicate

    def _pass(self, key: Key, name: Any) -> str:
        if name not in self.passes:
            self._fail(key, f'no pass "{name}"{nearest(str(name), self.passes)}', culprit=str(name))
        return name

    # Errors

    def _known(self, key: Key, found: Iterable[str], known: Iterable[str], what: str) -> None:
        for name in found:
            if name not in known:
                self._fail((*key, name), f'no {what} "{name}"{nearest(name, known)}')

    def _typed(self, key: Key, value, kind: type, words: str):
        if type(value) is not kind:
            self._fail(key, f'"{key[-1]}" is {value!r}; it must be {words}')
        return value

    def _at(self, key: Key, build: Callable):
        try:
            return build()
        except InputError as error:
            self._fail(key, str(error))

    def _place(self, key: Key) -> int | None:
        """The line of a key, or of the first key below it."""
        return self.lines.get(key) or next(
            (line for other, line in self.lines.items() if other[: len(key)] == key), None
        )

    def _fail(self, key: Key, text: str, culprit: str | None = None) -> None:
        places = (self._place(key[:size]) for size in range(len(key), 0, -1))
        line = next((place for place in places if place), 1)
        if culprit is not None:  # in a list over several lines
            line = next((at for at in range(line, len(self.rows) + 1) if f'"{culprit}"' in self.rows[at - 1]), line)
        raise InputError(f"{self.path}, line {line}: {text}") from None


def _any_of(predicates: list[Callable[[Node], bool]]) -> Callable[[Node], bool]:
    return lambda node: any(predicate(node) for predicate in predicates)


_KEY = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*"


def _keys(rows: list[str]) -> Iterator[tuple[Key, int]]:
    """Each key with the number of its line; those inside inline tables as far as they can be told apart."""
    table: Key = ()
    for number, row in enumerate(rows, 1):
        if header := re.match(rf"\s*\[{_DOTTED}\]", row):
            table = _parts(header[1])
            yield table, number
        elif entry := re.match(rf"{_DOTTED}=", row):
            yield (*table, *_parts(entry[1])), number


def _parts(dotted: str) -> Key:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))
