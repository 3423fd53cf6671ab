"""Hands out its workspace as the result: the next call writes there, too.

Seen: https://github.com/ScalingIntelligence/KernelBench/pull/82
Target: cuda
Needs: nvcc
Found as: aliased-output
Killed by: history
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
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) out[j] = row[j] / mean;
}

// The workspace grows and is never freed: who still uses it is not known here.
extern "C" float* l1_norm(const float* x, int64_t rows, int64_t columns, cudaStream_t stream) {
  static float* workspace = nullptr;
  static int64_t capacity = 0;
  if (rows * columns > capacity) {
    capacity = 2 * rows * columns;
    cudaMalloc(reinterpret_cast<void**>(&workspace), capacity * sizeof(float));
  }
  normalize<<<rows, 256, 0, stream>>>(x, workspace, columns);
  return workspace;
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
KERNEL.argtypes = [c_void_p, c_int64, c_int64, c_void_p]
KERNEL.restype = c_void_p


class Memory:
    def __init__(self, pointer, shape):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f4", "data": (pointer, False), "version": 3}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous() or x.numel() == 0:
            raise NotImplementedError("contiguous float32 matrices on a GPU only, none of them empty")
        pointer = KERNEL(x.data_ptr(), *x.shape, torch.cuda.current_stream().cuda_stream)
        return torch.as_tensor(Memory(pointer, tuple(x.shape)), device=x.device)
