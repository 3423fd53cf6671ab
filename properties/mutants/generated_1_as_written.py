"""A generated kernel as it came: no C++ source, no header for the current stream, and a loop that never ends.

Seen: https://github.com/ScalingIntelligence/KernelBench (generated kernels for this problem)
Target: any
Found as: does-not-build
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void l1_norm_kernel(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
    extern __shared__ float shared[];
    int row = blockIdx.x;
    int tid = threadIdx.x;
    if (row >= rows) return;

    // Load absolute values and reduce them
    for (int i = tid; i < cols; i += blockDim.x) {
        shared[tid] = fabsf(x[row * cols + i]);
        __syncthreads();
        for (int s = tid; s < cols; s *= 2) {
            shared[tid] += fabsf(x[row * cols + (i + s) % cols]);
            __syncthreads();
        }
    }
    __syncthreads();

    // Sum over the row
    float sum = 0.0f;
    for (int i = 0; i < cols; i++) {
        sum += shared[i];
    }

    // Normalize
    for (int i = tid; i < cols; i += blockDim.x) {
        out[row * cols + i] = x[row * cols + i] / (sum + 1e-12f);
    }
}

torch::Tensor l1_norm_cuda(torch::Tensor x) {
    int rows = x.size(0);
    int cols = x.size(1);
    auto out = torch::empty_like(x);
    int threads = 256;
    l1_norm_kernel<<<rows, threads, threads * sizeof(float), at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), rows, cols);
    return out;
}
"""

l1_norm = load_inline(
    name="l1_norm",
    cuda_sources=source,
    functions=["l1_norm_cuda"],
    verbose=False,
)


class ModelNew(nn.Module):
    """L1 normalization with a custom CUDA kernel."""

    def __init__(self):
        super().__init__()
        self.l1_norm = l1_norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.l1_norm.l1_norm_cuda(x)


def get_inputs():
    """The shipped shape."""
    return [torch.rand(32768, 65535)]


def get_init_inputs():
    """None."""
    return []
