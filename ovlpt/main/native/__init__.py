"""What the native library does in another way than the mathematics of a rule, kept with ``native_only``.

Each class stands in the place of the one whose name it has.
"""

from ovlpt.layer_transformation import LayerTransformation
from ovlpt.main.native.computed import (
    ClampTransformation,
    MVNTransformation,
    NormalizeL2Transformation,
    PadTransformation,
    PReluTransformation,
)
from ovlpt.main.native.elementwise import AddTransformation, MultiplyPartialTransformation
from ovlpt.main.native.mat_mul import MatMulTransformation
from ovlpt.main.native.weighted import (
    ConvolutionBackpropDataTransformation,
    ConvolutionTransformation,
    GroupConvolutionTransformation,
)

NATIVE: dict[str, type[LayerTransformation]] = {
    kind.__name__: kind
    for kind in (
        AddTransformation,
        ClampTransformation,
        ConvolutionBackpropDataTransformation,
        ConvolutionTransformation,
        GroupConvolutionTransformation,
        MVNTransformation,
        MatMulTransformation,
        MultiplyPartialTransformation,
        NormalizeL2Transformation,
        PReluTransformation,
        PadTransformation,
    )
}
