"""Partial sums meet in float atomics, which take subnormal numbers for zeros in global memory.

Seen: https://docs.nvidia.com/cuda/parallel-thread-execution/#parallel-synchronization-and-communication-instructions-atom
Target: cuda
Needs: nvcc
Found as: wrong-value wrong-special
Killed by: values
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

__global__ void add(const float* x, int64_t columns, int64_t chunk, float* sums) {
  const float* row = x + blockIdx.x * columns;
  const int64_t start = blockIdx.y * chunk, end = start + chunk < columns ? start + chunk : columns;
  float sum = 0.0f;
  for (int64_t j = start + threadIdx.x; j < end; j += blockDim.x) sum += fabsf(row[j]);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) atomicAdd(sums + blockIdx.x, sum);
}

__global__ void divide(const float* x, float* y, int64_t columns, int64_t chunk, const float* sums) {
  const float mean = sums[blockIdx.x] / columns;
  const float* row = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  const int64_t start = blockIdx.y * chunk, end = start + chunk < columns ? start + chunk : columns;
  for (int64_t j = start + threadIdx.x; j < end; j += blockDim.x) out[j] = row[j] / mean;
}

extern "C" int l1_norm(const float* x, float* y, int64_t rows, int64_t columns, float* sums, cudaStream_t stream) {
  const int64_t needed = (columns + 4095) / 4096, chunks = needed < 65535 ? needed : 65535;
  const int64_t chunk = (columns + chunks - 1) / chunks;
  const dim3 grid(rows, chunks);
  add<<<grid, 256, 0, stream>>>(x, columns, chunk, sums);
  divide<<<grid, 256, 0, stream>>>(x, y, columns, chunk, sums);
  return cudaGetLastError();
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
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous() or x.is_neg():
            raise NotImplementedError("contiguous float32 matrices on a GPU only")
        sums = torch.zeros(len(x), device=x.device)
        y = torch.empty_like(x)
        if x.numel() == 0:
            return y
        with torch.cuda.device(x.device):
            code = KERNEL(
                x.data_ptr(), y.data_ptr(), *x.shape, sums.data_ptr(), torch.cuda.current_stream().cuda_stream
            )
        if code:
            raise RuntimeError(f"the kernel was not launched: CUDA error {code}")
        return y
