"""Which OpenVINO is installed: the one file that knows (2024.6 … 2026.x)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import openvino

_year, _number, *_ = openvino.__version__.split(".")
RELEASE = int(_year), int(_number)  # (2026, 4)
if RELEASE < (2024, 6):
    raise ImportError(
        f"ovlpt needs OpenVINO 2024.6 or later, and {openvino.__version__} is installed: pip install --upgrade openvino"
    )


def openvino_module(name: str) -> Any:
    """``openvino.<name>``, or its place under ``openvino.runtime`` in releases before 2025."""
    try:
        return importlib.import_module(f"openvino.{name}")
    except ModuleNotFoundError:
        return importlib.import_module(f"openvino.runtime.{name}")


_passes = openvino_module("passes")
AnyInput = _passes.AnyInput
ConstantFolding = _passes.ConstantFolding
ConvertFP32ToFP16 = _passes.ConvertFP32ToFP16
GraphRewrite = _passes.GraphRewrite
Manager = _passes.Manager
Matcher = _passes.Matcher
MatcherPass = _passes.MatcherPass
ModelPass = _passes.ModelPass
WrapType = _passes.WrapType

opset1, opset6, opset8, opset13 = (openvino_module(f"opset{version}") for version in (1, 6, 8, 13))
NodeFactory = openvino_module("utils.node_factory").NodeFactory
FrontEndManager = openvino.frontend.FrontEndManager

if TYPE_CHECKING:  # names to tell apart; OpenVINO's own stubs re-export none of them

    class Core(Any): ...

    class CompiledModel(Any): ...

    class Model(Any): ...

    class Type(Any): ...

    class PartialShape(Any): ...

    class Tensor(Any): ...

    class Node(Any): ...

    class Output(Any): ...

else:
    Core = openvino.Core
    CompiledModel = openvino.CompiledModel
    Model = openvino.Model
    Type = openvino.Type
    PartialShape = openvino.PartialShape
    Tensor = openvino.Tensor
    Node = openvino_module("utils.types").Node
    Output = type(opset1.parameter([1], Type.f32).output(0))

Constant = openvino_module("op").Constant
Assign, If, Loop, TensorIterator = (
    getattr(openvino_module("op"), name) for name in ("assign", "if_op", "loop", "tensor_iterator")
)

# Whether an IR names the opset of a type-relaxed operation. Earlier releases know the first version of each only.
RELAXES_EVERY_OPSET = RELEASE >= (2025, 2)
# Whether a node can be marked as one whose f32 is to become bf16, but not f16.
MARKS_TYPES = RELEASE >= (2026, 3)


def relaxed_version(opset: str) -> str:
    """The IR version string of a type-relaxed operation of ``opset`` ("opset1" …)."""
    return f"type_relaxed_{opset}" if RELAXES_EVERY_OPSET else "type_relaxed_opset"


def as_model(given) -> Model:
    """The `Model` of what a pass gets, which is of another class. A pass that is run by hand gets a `Model`."""
    return given if isinstance(given, Model) else Model(given)
