"""Stages whole tiles of a row in shared memory: the last one reaches past the end of the row (unmasked load).

Seen: https://github.com/flagos-ai/FlagGems/issues/5230
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

// The tile is loaded by all threads and added up by the first warp, eight neighbours a thread.
__global__ void normalize(const float* x, float* y, int64_t columns) {
  __shared__ float tile[256], mean;
  const float* row = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  float sum = 0.0f;
  for (int64_t start = 0; start < columns; start += 256) {
    tile[threadIdx.x] = row[start + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
      for (int k = 8 * threadIdx.x; k < 8 * threadIdx.x + 8 && start + k < columns; ++k) sum += fabsf(tile[k]);
    }
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    sum = warp_sum(sum);
    if (threadIdx.x == 0) mean = sum / columns;
  }
  __syncthreads();
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) out[j] = row[j] / mean;
}

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
  normalize<<<rows, 256, 0, stream>>>(x, y, columns);
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
