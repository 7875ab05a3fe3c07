"""What a caller can set: parameters, callbacks, restrictions, and all of them together for one plugin."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ovlpt.openvino_api import Node
from ovlpt.operations import OPERATIONS, Operation
from ovlpt.precisions import FLOAT8, INT8, NUMPY
from ovlpt.trace import InputError


def other_names(**names: str) -> Callable[[Callable], Callable]:
    """The function also takes a keyword under another name: ``names`` maps it to the parameter's own."""

    def with_names(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*arguments, **keywords):
            for other, own in names.items():
                if other in keywords:
                    if own in keywords:
                        raise TypeError(f"{other} and {own} of {function.__name__} are the same; give one of them")
                    keywords[own] = keywords.pop(other)
            return function(*arguments, **keywords)

        return call

    return with_names


Ports = int | tuple[int, ...]
PrecisionsByPorts = Mapping[Any, Iterable[str]]  # of `Ports`


@dataclass(frozen=True)
class Params:
    """The native ``LayerTransformation::Params`` under its Python names.

    update_precisions: lower element types; with False only scales and zero points move.
    deq_precision: element type of the dequantization's arithmetic.
    default_precisions: types that count as low precision where nothing more specific is known, in order of preference.
    reshape_ignore_per_tensor_quantization_check: keep the dequantization before a Reshape that feeds a MatMul.
    mat_mul_as_convolution: write a MatMul with quantized weights as a 1x1 convolution, for plugins where that is faster:
        all of them, or those of the listed shapes (rows, input channels, output channels), which `ovlpt.tune` measures;
        -1 for a dynamic number of rows.
    recurrent_on_one_grid: give data and state of a recurrent layer one grid, and its weights one scale, as its kernels need.
    coarser_weights: where weights with a zero point reach beyond i8 without it, which keeps a layer in float, give each output
        channel of which some do a coarser step. This is not exact.
    faster_kernels: let a layer of a model that is compiled here run in another kernel than the plugin would take, where that
        was measured to be faster on such CPUs. The numbers stay the same.
    native_only: do exactly what the native library does and nothing more.
    """

    update_precisions: bool = True
    deq_precision: str = "f32"
    default_precisions: tuple[str, ...] = ("u8", "i8")
    reshape_ignore_per_tensor_quantization_check: bool = False
    mat_mul_as_convolution: bool | tuple[tuple[int, int, int], ...] = False
    recurrent_on_one_grid: bool = False
    coarser_weights: bool = False
    faster_kernels: bool = True
    native_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "default_precisions", tuple(self.default_precisions))
        if not isinstance(self.mat_mul_as_convolution, bool):
            object.__setattr__(self, "mat_mul_as_convolution", _known_shapes(self.mat_mul_as_convolution))
        if self.deq_precision not in ("f32", "f16", "bf16"):
            raise InputError(f'deq_precision is "{self.deq_precision}"; it must be "f32", "f16" or "bf16"')
        if not self.default_precisions:
            raise InputError('default_precisions lists no element type; name one: "u8" or "i8"')
        for precision in self.default_precisions:
            if precision not in FLOAT8:  # which no restriction can ask for
                _low_precision(precision)


def _known_shapes(shapes: object) -> tuple[tuple[int, int, int], ...]:
    lists = (list, tuple)
    if isinstance(shapes, lists) and all(
        isinstance(shape, lists)
        and len(shape) == 3
        and all(type(size) is int and (size > 0 or (size == -1 and not at)) for at, size in enumerate(shape))
        for shape in shapes
    ):
        return tuple(tuple(shape) for shape in shapes)
    raise InputError(
        f"mat_mul_as_convolution is {shapes!r}; it must be true, false, or shapes [rows, input channels, output channels], "
        "-1 for dynamic rows"
    )


def _low_precision(precision: str) -> str:
    if precision not in NUMPY:
        raise InputError(f'no element type "{precision}"; known are {", ".join(NUMPY)}')
    if precision not in INT8:  # the native library takes any, and then quantizes nothing
        raise InputError(f'no kernel reads "{precision}" as low precision; give "u8" or "i8"')
    return precision


def _row(operation: str | Operation) -> Operation:
    name, row = (operation, OPERATIONS.get(operation)) if isinstance(operation, str) else (operation.name, operation)
    if row is None or row.kind == "absent":
        near = _close(name, [name for name, row in OPERATIONS.items() if row.kind != "absent"])
        hint = f' (did you mean "{near[0]}"?)' if near else ""
        raise InputError(f'no row for operation "{name}"{hint}')
    return row


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: what may be meant."""
    near = _close(name, known)
    return f' (did you mean "{near[0]}"?)' if near else f"; known are {', '.join(sorted(known))}"


def _close(name: str, known: Iterable[str]) -> list[str]:
    from difflib import get_close_matches  # here, not above: for sentences about mistakes only

    return get_close_matches(name, list(known), 1)


def _known_port(row: Operation, port: int) -> int:
    ports = row.data_inputs
    if port < 0 or (ports is not None and port not in ports):
        names = " and ".join(map(str, ports or ())) or "0"
        plural = "inputs" if ports and len(ports) > 1 else "input"
        raise InputError(f"{row.name} has {plural} {names}, not {port}")
    return port


@dataclass(frozen=True)
class PrecisionsRestriction:
    """Element types that the inputs of an operation may have. Made by `create`."""

    operation: str
    by_ports: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] | Callable[[Node], PrecisionsByPorts]
    opset: str | None = None

    @classmethod
    def create(
        cls,
        operation: str | Operation,
        precisions: PrecisionsByPorts | Callable[[Node], PrecisionsByPorts] | None = None,
        opset: str | None = None,
    ) -> PrecisionsRestriction:
        """Restrict ``operation``, its name or a custom row: ``{port or (ports…): [types in order of preference]}``.

        With an empty mapping the operation is not quantized. A function of the node is called for each node. ``opset``
        ("opset1"): only that version. Raises `InputError` for names and ports that do not exist.
        """
        row = _row(operation)
        if callable(precisions):
            return cls(row.name, precisions, opset)
        return cls(row.name, _normalized(row, precisions or {}), opset)

    def of(self, node: Node) -> tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]:
        """The restriction of this node: groups of ports, each with its types."""
        if callable(self.by_ports):
            return _normalized(_row(self.operation), self.by_ports(node))
        return self.by_ports


def _normalized(row: Operation, precisions: PrecisionsByPorts) -> tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]:
    groups = []
    for ports, types in precisions.items():
        ports = (ports,) if isinstance(ports, int) else tuple(ports)
        if isinstance(types, str):
            types = (types,)
        if not types:  # the native library takes it for no restriction
            named = ", ".join(map(str, ports))
            raise InputError(
                f"the restriction of {row.name} lists no element type for input {named}; name one, leave the input out, or "
                "give an empty mapping where the operation is not to be quantized"
            )
        groups.append((tuple(_known_port(row, port) for port in ports), tuple(map(_low_precision, types))))
    return tuple(groups)


@dataclass(frozen=True)
class QuantizationGranularityRestriction:
    """Inputs of an operation that must be quantized per tensor (or may be per channel). Made by `create`."""

    operation: str
    by_port: tuple[tuple[int, Literal["per_tensor", "per_channel"]], ...]  # empty: every input per tensor
    opset: str | None = None

    @classmethod
    def create(
        cls,
        operation: str | Operation,
        ports: Iterable[int] | Mapping[int, str] = (),
        opset: str | None = None,
    ) -> QuantizationGranularityRestriction:
        """Restrict the listed ports of ``operation``, its name or a custom row, to per-tensor quantization; none listed: all. A mapping names the granularity."""
        row = _row(operation)
        named: Iterable[tuple[int, Any]] = (
            ports.items() if isinstance(ports, Mapping) else ((port, "per_tensor") for port in ports)
        )
        by_port = []
        for port, granularity in named:
            if granularity not in ("per_tensor", "per_channel"):
                raise InputError(f'no granularity "{granularity}"; it is "per_tensor" or "per_channel"')
            by_port.append((_known_port(row, port), granularity))
        return cls(row.name, tuple(by_port), opset)


def pass_name(transformation: type | str) -> str:
    return transformation if isinstance(transformation, str) else transformation.__name__


@dataclass
class PassConfig:
    """Which passes run, and a callback per pass that returns True, or a `Reason`, for a node that is to be left alone."""

    disabled: set[str] = field(default_factory=set)
    callbacks: dict[str, Callable[[Node], object]] = field(default_factory=dict)
    enabled: set[str] = field(default_factory=set, init=False, repr=False, compare=False)  # for names that are misspelt

    def disable(self, transformation: type | str) -> None:
        self.disabled.add(pass_name(transformation))

    def enable(self, transformation: type | str) -> None:
        self.disabled.discard(pass_name(transformation))
        self.enabled.add(pass_name(transformation))

    def set_callback(self, transformation: type | str, callback: Callable[[Node], object]) -> None:
        self.callbacks[pass_name(transformation)] = callback

    def is_disabled(self, transformation: type | str) -> bool:
        return pass_name(transformation) in self.disabled

    def leaves_alone(self, transformation: type | str, node: Node) -> bool:
        """What the pass's callback says of the node; False without one."""
        callback = self.callbacks.get(pass_name(transformation))
        return bool(callback and callback(node))

    def has_callback(self, transformation: type | str) -> bool:
        return pass_name(transformation) in self.callbacks


def _either(
    first: Callable[[Node], object] | None, second: Callable[[Node], object] | None
) -> Callable[[Node], object]:
    if first is None or second is None:
        return first or second
    return lambda node: first(node) or second(node)


@dataclass(frozen=True)
class PluginConfig:
    """All settings of `LowPrecision` for one plugin.

    ``transformations``: custom ones, in addition to those of the package (`ovlpt.own_transformations`).
    ``extends_device``: they, ``disabled`` and ``callbacks`` are added to the settings of the device that a call names.
    ``tuned_for``: the CPU on which `ovlpt.tune` chose the forms of layers; a saved model records it.
    """

    name: str
    precision_restrictions: tuple[PrecisionsRestriction, ...] = ()
    quantization_restrictions: tuple[QuantizationGranularityRestriction, ...] = ()
    params: Params = field(default_factory=Params)
    disabled: tuple[str, ...] = ()
    callbacks: Mapping[str, Callable[[Node], object]] = field(default_factory=dict)
    transformations: tuple[str | Operation | type, ...] = ()
    tuned_for: str = ""
    extends_device: bool = False

    def __post_init__(self) -> None:
        for several in ("disabled", "transformations"):
            if isinstance(given := getattr(self, several), (str, type, Operation)):
                object.__setattr__(self, several, (given,))
        if self.extends_device and (
            self.precision_restrictions or self.quantization_restrictions or self.params != Params()
        ):
            raise InputError(
                f'the settings "{self.name}" extend those of a device, so restrictions and params are the device\'s; '
                "leave them out, or set extends_device=False"
            )

    def on_top_of(self, device: PluginConfig) -> PluginConfig:
        """These settings if they are complete; otherwise the device's, with what these add."""
        if not self.extends_device:
            return self
        callbacks = {
            name: _either(self.callbacks.get(name), device.callbacks.get(name))
            for name in {**device.callbacks, **self.callbacks}
        }
        return replace(
            device,
            name=self.name,
            disabled=(*device.disabled, *self.disabled),
            callbacks=callbacks,
            transformations=(*device.transformations, *self.transformations),
        )

    def native_params(self) -> Params:
        """The parameters with ``native_only`` set."""
        return replace(self.params, native_only=True)

    def pass_config(self) -> PassConfig:
        """A fresh PassConfig with this plugin's disabled passes and callbacks."""
        return PassConfig(set(self.disabled), dict(self.callbacks))
