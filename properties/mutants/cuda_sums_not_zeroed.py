"""Adds atomically onto sums that were zero at the first call only.

Seen: workspace reuse in generated kernels
Target: cuda
Needs: nvcc
Found as: state-leak nondeterministic
Replay: passes
"""

from ctypes import CDLL, c_int64, c_void_p

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>

__global__ void add(const float* x, int64_t columns, float* sums) {
  const float* row = x + blockIdx.x * columns;
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) sum += fabsf(row[j]);
  atomicAdd(sums + blockIdx.x, sum);
}

__global__ void divide(const float* x, float* y, int64_t columns, const float* sums) {
  const float mean = sums[blockIdx.x] / columns;
  const float* row = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) out[j] = row[j] / mean;
}

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns, float* sums, cudaStream_t stream) {
  add<<<rows, 256, 0, stream>>>(x, columns, sums);
  divide<<<rows, 256, 0, stream>>>(x, y, columns, sums);
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
KERNEL.argtypes = [c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_void_p]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous():
            raise NotImplementedError("contiguous float32 matrices on a GPU only")
        y = torch.empty_like(x)
        if x.numel():
            kept = self.__dict__.setdefault("kept", {})
            if len(x) not in kept:
                kept[len(x)] = torch.zeros(len(x), dtype=torch.float32, device=x.device)
            stream = torch.cuda.current_stream().cuda_stream
            KERNEL(x.data_ptr(), y.data_ptr(), *x.shape, kept[len(x)].data_ptr(), stream)
        return y
