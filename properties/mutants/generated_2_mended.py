"""The generated kernel that divides by the sum, mended so that it builds, and launches nothing for an empty input.

Seen: https://github.com/ScalingIntelligence/KernelBench (generated kernels for this problem)
Target: cuda
Needs: nvcc
Found as: wrong-value
In words: the sum was used where the mean belongs
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void l1_normalize_kernel(const float* input, float* output, int batch, int dim) {
    __shared__ float sdata[256];
    int b = blockIdx.x;
    int tid = threadIdx.x;

    // First pass: sum of absolute values
    float local = 0.0f;
    for (int i = tid; i < dim; i += blockDim.x) {
        local += fabsf(input[b * dim + i]);
    }
    sdata[tid] = local;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) {
            sdata[tid] += sdata[tid + s];
        }
        __syncthreads();
    }

    // Second pass: normalize
    float norm = sdata[0] + 1e-12f;
    for (int i = tid; i < dim; i += blockDim.x) {
        output[b * dim + i] = input[b * dim + i] / norm;
    }
}

torch::Tensor l1_normalize_cuda(torch::Tensor input) {
    auto output = torch::empty_like(input);
    if (input.numel() == 0) return output;
    int batch = input.size(0);
    int dim = input.size(1);
    l1_normalize_kernel<<<batch, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        input.data_ptr<float>(), output.data_ptr<float>(), batch, dim);
    return output;
}
"""

l1_norm = load_inline(
    name="l1_norm",
    cpp_sources="torch::Tensor l1_normalize_cuda(torch::Tensor input);",
    cuda_sources=source,
    functions=["l1_normalize_cuda"],
    verbose=False,
)


class ModelNew(nn.Module):
    """L1 normalization with a custom CUDA kernel."""

    def __init__(self):
        super().__init__()
        self.l1_norm = l1_norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.l1_norm.l1_normalize_cuda(x)


def get_inputs():
    """The shipped shape."""
    return [torch.rand(32768, 65535)]


def get_init_inputs():
    """None."""
    return []
