"""Machines that learn the weights of kernels, for classes, numbers and novelty."""

from widemargin._multiple_kernel.classification import MultipleKernelSVC
from widemargin._multiple_kernel.novelty import MultipleKernelOneClassSVM
from widemargin._multiple_kernel.regression import MultipleKernelSVR

__all__ = ["MultipleKernelOneClassSVM", "MultipleKernelSVC", "MultipleKernelSVR"]
