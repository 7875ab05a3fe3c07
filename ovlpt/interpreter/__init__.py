"""Runs a transformed model in integers, layer by layer, on the kernels of `ovlpt.reference`."""

from ovlpt.interpreter.execution import Interpreter, execute
from ovlpt.interpreter.layer import Layer, layers_of

__all__ = ["Interpreter", "Layer", "execute", "layers_of"]
