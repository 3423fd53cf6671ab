"""Works on a stream of its own that nobody waits for: the result is handed out before it is there.

Seen: https://github.com/ScalingIntelligence/KernelBench/pull/82
Target: cuda
Needs: nvcc
Found as: not-written wrong-stream wrong-value wrong-special nondeterministic state-leak
Smallest case: 20000000 elements (work that takes longer than looking at it)
Replay: passes
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
  if (r >= rows) return;
  const float* row = x + r * columns;
  float* out = y + r * columns;
  float sum = 0.0f;
  for (int64_t j = lane; j < columns; j += 32) sum += fabsf(row[j]);
  const float mean = warp_sum(sum) / columns;
  for (int64_t j = lane; j < columns; j += 32) out[j] = row[j] / mean;
}

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns) {
  static cudaStream_t own = nullptr;
  if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  normalize<<<(rows + 7) / 8, 256, 0, own>>>(x, y, rows, columns);
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
KERNEL.argtypes = [c_void_p, c_void_p, c_int64, c_int64]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous():
            raise NotImplementedError("contiguous float32 matrices on a GPU only")
        y = torch.empty_like(x)
        if x.numel():
            KERNEL(x.data_ptr(), y.data_ptr(), *x.shape)
        return y
