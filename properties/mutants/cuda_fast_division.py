"""Divides with __fdividef: not rounded, and 0 where the mean is above 2^126.

Seen: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#intrinsic-functions
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

__device__ float block_sum(float value) {
  __shared__ float parts[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  value = warp_sum(lane < blockDim.x / 32 ? parts[lane] : 0.0f);
  __syncthreads();
  return value;
}

__global__ void normalize(const float* x, float* y, int64_t columns) {
  const float* row = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) sum += fabsf(row[j]);
  const float mean = block_sum(sum) / columns;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) out[j] = __fdividef(row[j], mean);
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
