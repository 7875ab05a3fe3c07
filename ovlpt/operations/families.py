"""Families of operations, by their mathematics.

What one plugin fuses, or has a kernel for, is said where that plugin is asked, as a family and what is added to it.
"""

from __future__ import annotations

# ``x * a + b``, where the other input is a constant
AFFINE = frozenset(("Add", "Multiply", "Subtract"))
ARITHMETIC = AFFINE | {"Divide"}

# Functions of one number that no scale passes through
ACTIVATIONS = frozenset(("Elu", "Gelu", "HSigmoid", "HSwish", "Mish", "Sigmoid", "SoftPlus", "Swish", "Tanh"))

# All elements of the input, in another shape or in another order
RESHAPES = frozenset(("Reshape", "Squeeze", "Unsqueeze"))
REARRANGES = RESHAPES | {"Transpose"}
SPLITS = frozenset(("Split", "VariadicSplit"))
SLICES = frozenset(("Slice", "StridedSlice"))
# Elements of the input, at other places, in another type, or several times
PASSES_ON = REARRANGES | SLICES | {"Broadcast", "Convert", "Tile"}

CONVOLUTIONS = frozenset(("Convolution", "GroupConvolution"))
DECONVOLUTIONS = frozenset(("ConvolutionBackpropData", "GroupConvolutionBackpropData"))  # kernels without a zero point

# With constant inputs these are still not constants: they hold state, draw random numbers, or end the model
BRING_DATA = frozenset(
    ("Assign", "If", "Loop", "Multinomial", "RandomUniform", "ReadValue", "Result", "TensorIterator")
)
