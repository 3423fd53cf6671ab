"""The check that keeps warps within the rows is off by one: a row behind the last is read and written.

Seen: off-by-one bounds checks
Target: cuda
Needs: nvcc
Found as: out-of-bounds
Killed by: memcheck
Case: shape=3x1023,seed=16
"""

from ctypes import CDLL, c_int64, c_void_p

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  return value;
}

__global__ void normalize(const float* x, float* y, int64_t rows, int64_t columns) {
  const int64_t r = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) / 32;
  const unsigned lane = threadIdx.x % 32;
  if (r > rows) return;
  const float* row = x + r * columns;
  float* out = y + r * columns;
  float sum = 0.0f;
  for (int64_t j = lane; j < columns; j += 32) sum += fabsf(row[j]);
  const float mean = warp_sum(sum) / columns;
  for (int64_t j = lane; j < columns; j += 32) out[j] = row[j] / mean;
}

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
  normalize<<<rows / 8 + 1, 256, 0, stream>>>(x, y, rows, columns);
}
"""
LIBRARY = load_inline(
    name="l1_norm",
    cpp_sources="",
    cuda_sources=SOURCE,
    functions=None,
    is_python_module=False,
    no_implicit_headers=True,
)
KERNEL = CDLL(LIBRARY).l1_norm
KERNEL.argtypes = [c_void_p, c_void_p, c_int64, c_int64, c_void_p]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous():
            raise NotImplementedError("contiguous float32 matrices on a GPU only")
        y = torch.empty_like(x)
        if x.numel():
            KERNEL(x.data_ptr(), y.data_ptr(), *x.shape, torch.cuda.current_stream().cuda_stream)
        return y
