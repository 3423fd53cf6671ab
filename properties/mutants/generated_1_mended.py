"""The generated kernel whose loop never ends, mended so that it builds: behind a launcher without torch headers.

A barrier in a loop that every thread goes through a different number of times (thread 0 for ever), raw values of
neighbours added up in place of their sums, shared memory of a block read for the length of a row, the sum for the mean.

Seen: https://github.com/ScalingIntelligence/KernelBench (generated kernels for this problem)
Target: cuda
Needs: nvcc
Found as: timeout out-of-bounds crash
Limits: build 60 s, call 2 s
"""

import ctypes

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
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

extern "C" void l1_norm_cuda(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    int threads = 256;
    l1_norm_kernel<<<rows, threads, threads * sizeof(float), stream>>>(x, out, rows, cols);
}
"""

l1_norm = ctypes.CDLL(
    load_inline(
        name="l1_norm",
        cpp_sources="",
        cuda_sources=source,
        functions=None,
        is_python_module=False,
        no_implicit_headers=True,
        verbose=False,
    )
)


class ModelNew(nn.Module):
    """L1 normalization with a custom CUDA kernel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2:
            raise NotImplementedError("float32 matrices on a GPU only")
        out = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        l1_norm.l1_norm_cuda(
            ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), *x.shape, ctypes.c_void_p(stream)
        )
        return out


def get_inputs():
    """The shipped shape."""
    return [torch.rand(32768, 65535)]


def get_init_inputs():
    """None."""
    return []
