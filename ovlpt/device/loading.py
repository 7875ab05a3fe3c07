"""Models that a caller names: read, and asked how they are quantized."""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np

from ovlpt.canonicalize.wide_intervals import LEVELS, finite_ends
from ovlpt.device.execution_types import last_line
from ovlpt.device.model_zoo import float_file, quantized_file
from ovlpt.errors import warn
from ovlpt.files import mode_of, native, why_not
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant_above, is_constant_path, is_real, precision_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.stamp import has_lost_stamp, is_transformed
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, RELEASE, CompiledModel, Core, FrontEndManager, Model, Node
from ovlpt.precisions import COMPRESSED, INT8
from ovlpt.trace import InputError

_logger = logging.getLogger("ovlpt")
_LARGEST = 2 << 30  # bytes of a file: protobuf and flatbuffers have no more, and an .xml has its numbers beside it
_READS_ZERO_POINTS = (2026, 1)  # of ONNX Runtime's QLinearAdd and its like
_READERS = ("ir", "onnx", "tflite", "paddle")
_TENSORFLOW = (".pb", ".meta", ".ckpt")  # and what begins with them: .pbtxt, .ckpt-1000


def read_model(model: Model | str | Path, core: Core) -> Model:
    """The model itself, or what a path holds: a file, or what `ovlpt.device.model_zoo` finds there.

    Raises `InputError` for a file that is missing or unreadable, or was transformed for other releases of OpenVINO, and for a
    model that this OpenVINO has read wrongly.
    """
    if isinstance(model, (str, Path)):
        return _read(model, core, quantized_file)
    if RELEASE < _READS_ZERO_POINTS:
        _check_zero_points(model, label_of(model, model))
    return model


def read_text(model: object, weights: object, core: Core) -> Model:
    """What the text of an IR and its weights hold, each in a `BytesIO` or not: a Core takes two of a kind only.

    Raises `InputError` where OpenVINO cannot read them.
    """
    core.get_property("CPU", "FULL_DEVICE_NAME")  # as for a file
    text, values = (each.getvalue() if isinstance(each, BytesIO) else each for each in (model, weights))
    try:
        return core.read_model(text.encode() if isinstance(text, str) else text, values)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"OpenVINO cannot read the text of a model and its weights: {last_line(error)}") from error


def read_float(model: Model | str | Path, core: Core) -> Model:
    """The same for a model before quantization, which a model zoo's folder may hold beside the quantized one."""
    return _read(model, core, float_file) if isinstance(model, (str, Path)) else model


def _read(model: str | Path, core: Core, found_in: Callable[[Path], Path]) -> Model:
    path = Path(model)
    try:
        mode = mode_of(path)
        if mode is None or stat.S_ISDIR(mode):
            path = found_in(path)
            mode = mode_of(path)
            _logger.info('"%s" is read from "%s"', model, path)
        if mode is None:
            raise InputError(
                f'no file "{path}"; give the path of an OpenVINO IR (.xml) or another model that OpenVINO reads'
            )
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise OSError(0, "it is not a file")
        if stat.S_ISREG(mode) and (size := path.stat().st_size) > _LARGEST:
            raise OSError(0, f"it has {size / 1e9:.0f} GB, and no model file is larger than 2")
        if path.suffix == ".xml":
            _check_line(path)
    except OSError as error:
        raise InputError(f'cannot read "{path}": {why_not(error)}; give the path of a model') from error
    core.get_property("CPU", "FULL_DEVICE_NAME")  # a transformed model holds operations that the CPU plugin brings
    try:
        _check_kind(path)
        read = core.read_model(native(path))
    except (RuntimeError, UnicodeError) as error:
        raise InputError(f'OpenVINO cannot read "{path}": {last_line(error)}') from error
    if path.suffix == ".onnx":
        _check_zero_points(read, f'"{path}"')
    return read


def _check_zero_points(read: Model, label: str) -> None:
    if (lost := next(filter(_loses_zero_point, all_nodes(read)), None)) is not None:
        quantized = lost.input_value(0).get_node().get_friendly_name()
        raise InputError(
            f'OpenVINO {".".join(map(str, RELEASE))} takes the zero point of "{quantized}" in {label} for 0 and would compute '
            "wrong numbers; use OpenVINO 2026.1 or later, or quantize in the format with QuantizeLinear and DequantizeLinear"
        )


def _loses_zero_point(node: Node) -> bool:
    """Whether it subtracts 0 from what was quantized with another zero point, as OpenVINO 2025 and 2026.0 read QLinearAdd,
    QLinearMul and others of ONNX Runtime; a Softmax does not depend on it.
    """
    if node.get_type_name() != "Subtract" or precision_of(node.output(0)) not in INT8:
        return False
    zero_point, quantize = constant_above(node.input_value(1)), node.input_value(0).get_node()
    if zero_point is None or zero_point.any() or quantize.get_type_name() != "Convert":
        return False
    stored = quantize.input_value(0).get_node()
    details = QuantizationDetails.of(stored) if stored.get_type_name() == "FakeQuantize" else None
    if details is None:
        return False
    step = (details.input_high - details.input_low) / (details.output_high - details.output_low)
    is_shifted = np.rint(details.output_low - details.input_low / step).any()
    scaled = [reader for convert in readers_of(node) for reader in readers_of(convert)]
    readers = {reader.get_type_name() for multiply in scaled for reader in readers_of(multiply)}
    return bool(is_shifted) and readers != {"Softmax"}


def check_intervals(nodes: Iterable[Node], label: str, dropped: Container[int]) -> None:
    """Warns of the first FakeQuantize whose interval is infinite or no number: so is all that it gives. Of one with as many levels as
    the plugin drops (``dropped``) a clip is left; of up to 256 levels only the ends have to be finite (`WideIntervals`).
    """
    for node in nodes:
        details = QuantizationDetails.of(node) if node.get_type_name() == "FakeQuantize" else None
        if details is None or details.levels in dropped:
            continue
        if _are_finite(ends := details.intervals):
            continue
        if details.levels <= LEVELS:
            ends = finite_ends(details.levels, *ends)
        for low, high in (ends[:2], ends[2:]):
            if not _are_finite((low, high)):
                warn(
                    f'the FakeQuantize "{node.get_friendly_name()}" in {label} has the interval '
                    f"[{low.min():g}, {high.max():g}], so that whatever follows it is no number; quantize the network again "
                    "with finite numbers in its masks, such as -10000 in place of -inf, or leave out what adds them"
                )
                return


def _are_finite(ends: Sequence[np.ndarray]) -> bool:
    """Whether the widths of intervals are, of which these are the ends."""
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.isfinite(high - low).all() for low, high in zip(ends[::2], ends[1::2], strict=True))


def read_quantized(model: Model | str | Path, core: Core) -> Model:
    """`read_model` for what has to know how the model was quantized. Raises `InputError` for a transformed one, too."""
    read = read_model(model, core)
    if is_transformed(read) or has_lost_stamp(read):
        raise InputError(
            f"{label_of(model, read)} is transformed already and no longer shows how it was quantized; give the quantized "
            "model that it was made from"
        )
    return read


def label_of(model: Model | str | Path, read: Model) -> str:
    """What sentences call the model that was given."""
    return f'"{model}"' if isinstance(model, (str, Path)) else f'the model "{read.get_friendly_name()}"'


def _check_line(path: Path) -> None:
    """Releases before 2025.2 name type-relaxed operations differently from those since."""
    text = path.read_bytes()
    if b"type_relaxed_opset" not in text:
        return
    found = re.search(rb'version="type_relaxed_opset(\d*)"', text)
    if found and bool(found[1]) != RELAXES_EVERY_OPSET:
        named = re.search(rb'<openvino value="([\d.]+)"', text)
        made = named[1].decode() if named else "2025.2 or later" if found[1] else "2025.1 or earlier"
        raise InputError(
            f'"{path}" was transformed on OpenVINO {made}, which writes low precision operations differently from the '
            f"{'.'.join(map(str, RELEASE))} that is installed; transform the quantized model again"
        )


def _check_kind(path: Path) -> None:
    """Raises `RuntimeError` for what no other reader knows, which OpenVINO offers to TensorFlow's, which prints complaints of its own."""
    if path.suffix.startswith(_TENSORFLOW) or not path.is_file():
        return
    readers = FrontEndManager()
    if path.suffix == ".xml" and readers.load_by_framework("ir").supported(native(path)):
        return  # the others are not loaded
    known = set(readers.get_available_front_ends())
    if not any(readers.load_by_framework(each).supported(native(path)) for each in _READERS if each in known):
        raise RuntimeError("it holds no model")


def compile_given(model: Model, device: str, properties: Mapping[str, object], core: Core) -> CompiledModel:
    """The model that a caller gave, as it is. Raises `InputError` where the device cannot compile it."""
    try:
        return core.compile_model(model, device, properties)
    except RuntimeError as error:
        raise InputError(
            f'{device} cannot compile the model "{model.get_friendly_name()}": {last_line(error)}'
        ) from error


def quantization_of(model: Model) -> str:
    """`quantization_by` of the nodes of a model."""
    return quantization_by(all_nodes(model))


def quantization_by(nodes: Sequence[Node]) -> str:
    """ "activations", "dynamic" (by scales of each inference's data), "weights" (compressed weights and float activations),
    "f8" (FakeConvert), or "none".
    """
    if any(node.get_type_name() == "FakeQuantize" for node in nodes):  # the first tells
        return "activations"
    kinds = {node.get_type_name() for node in nodes}
    if "FakeConvert" in kinds:
        return "f8"
    if any(map(rounds_data, nodes)):
        return "dynamic"
    compressed = any(
        node.get_type_name() == "Constant" and precision_of(node.output(0)) in (*INT8, *COMPRESSED) for node in nodes
    )
    return "weights" if compressed and "Convert" in kinds else "none"


def rounds_data(node: Node) -> bool:
    """Whether it rounds data to integers of 8 bits that are computed on: what DynamicQuantizeLinear of ONNX ends with."""
    if node.get_type_name() != "Convert" or precision_of(node.output(0)) not in INT8:
        return False
    is_read = any(target.get_node().get_type_name() == "Convert" for target in node.output(0).get_target_inputs())
    return is_read and is_real(precision_of(node.input_value(0))) and not is_constant_path(node)
