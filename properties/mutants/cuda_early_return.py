"""Threads without a column return before the reduction: sums that their warps never wrote are added up.

Seen: if (tid >= n) return; above a barrier
Target: cuda
Needs: nvcc
Found as: wrong-value wrong-special nondeterministic state-leak crash timeout
Smallest case: 1048576 elements (whatever shared memory held before)
Replay: passes
"""

from ctypes import CDLL, c_int64, c_void_p

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>

__global__ void normalize(const float* x, float* y, int64_t columns) {
  __shared__ float parts[8];
  if (threadIdx.x >= columns) return;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* row = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) sum += fabsf(row[j]);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(__activemask(), sum, step);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int k = 0; k < 8; ++k) total += parts[k];
  const float mean = total / columns;
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
