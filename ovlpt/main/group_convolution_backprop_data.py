from ovlpt.main.convolution_backprop_data import ConvolutionBackpropDataTransformation
from ovlpt.operations import OPERATIONS


class GroupConvolutionBackpropDataTransformation(ConvolutionBackpropDataTransformation):
    """Weights [G, I, O, …]: the output channels are the first and the third axis."""

    operation = OPERATIONS["GroupConvolutionBackpropData"]
