"""Adds up in the storage type: a float16 sum sticks at 2048 a thread, or overflows.

Seen: https://github.com/microsoft/onnxruntime/issues/29034
Target: cuda
Needs: nvcc
Found as: wrong-value wrong-special
"""

from ctypes import CDLL, c_int, c_int64, c_void_p

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_fp16.h>

#include <cstdint>

__device__ float widen(float value) { return value; }
__device__ float widen(__half value) { return __half2float(value); }
__device__ void store(float& place, float value) { place = value; }
__device__ void store(__half& place, float value) { place = __float2half(value); }
__device__ void add(float& sum, float value) { sum += value; }
__device__ void add(__half& sum, float value) { sum = __hadd(sum, __float2half(value)); }

template <typename T>
__global__ void normalize(const T* x, T* y, int64_t columns) {
  __shared__ T sums[256];
  const T* row = x + blockIdx.x * columns;
  T* out = y + blockIdx.x * columns;
  T sum;
  store(sum, 0.0f);
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) add(sum, fabsf(widen(row[j])));
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) add(sums[threadIdx.x], widen(sums[threadIdx.x + width]));
    __syncthreads();
  }
  const float mean = widen(sums[0]) / columns;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) store(out[j], widen(row[j]) / mean);
}

extern "C" void l1_norm(const void* x, void* y, int64_t rows, int64_t columns, int is_half, cudaStream_t stream) {
  if (is_half) {
    normalize<<<rows, 256, 0, stream>>>(static_cast<const __half*>(x), static_cast<__half*>(y), columns);
  } else {
    normalize<<<rows, 256, 0, stream>>>(static_cast<const float*>(x), static_cast<float*>(y), columns);
  }
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
KERNEL.argtypes = [c_void_p, c_void_p, c_int64, c_int64, c_int, c_void_p]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or x.dtype not in (torch.float16, torch.float32) or x.dim() != 2 or not x.is_contiguous():
            raise NotImplementedError("contiguous float16 and float32 matrices on a GPU only")
        y = torch.empty_like(x)
        if x.numel():
            stream = torch.cuda.current_stream().cuda_stream
            KERNEL(x.data_ptr(), y.data_ptr(), *x.shape, x.dtype == torch.float16, stream)
        return y
