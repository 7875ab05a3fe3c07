"""Graph fusions before quantization: batch normalization, group convolution, ReLU6."""

from ovlpt.fusions.batch_norm_branch import BatchNormBranchFusion
from ovlpt.fusions.batch_norm_elementwise import BatchNormAddFusion, BatchNormMultiplyFusion
from ovlpt.fusions.convolution_batch_norm import ConvolutionBatchNormFusion
from ovlpt.fusions.freeze_variables import FreezeVariables
from ovlpt.fusions.inverse_transposes import InverseTransposesFusion
from ovlpt.fusions.quantization_fusions import FUSIONS, QuantizationFusions, fuse
from ovlpt.fusions.requantization import RequantizationFusion
from ovlpt.fusions.small_batch_norm import SmallBatchNormFusion
from ovlpt.fusions.split_convolution_concat import SplitConvolutionConcatFusion
from ovlpt.fusions.transpose_sinking import TransposeSinkingFusion

__all__ = [
    "FUSIONS",
    "BatchNormAddFusion",
    "BatchNormBranchFusion",
    "BatchNormMultiplyFusion",
    "ConvolutionBatchNormFusion",
    "FreezeVariables",
    "InverseTransposesFusion",
    "QuantizationFusions",
    "RequantizationFusion",
    "SmallBatchNormFusion",
    "SplitConvolutionConcatFusion",
    "TransposeSinkingFusion",
    "fuse",
]
