"""Offsets of 32 bits: beyond 2^31 elements a row lies where there is no memory.

Seen: int row = blockIdx.x, int n: in most generated kernels
Target: cuda
Needs: nvcc
Found as: out-of-bounds crash wrong-value wrong-special not-written
Killed by: huge
Case: shape=32769x65537,dtype=float16,values=integers,seed=13
Smallest case: 2147581953 elements (the fewest above 2^31)
Replay: passes
"""

from ctypes import CDLL, c_int, c_int64, c_void_p

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_fp16.h>

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

__device__ float widen(float value) { return value; }
__device__ float widen(__half value) { return __half2float(value); }
__device__ void store(float* place, float value) { *place = value; }
__device__ void store(__half* place, float value) { *place = __float2half(value); }

template <typename T>
__global__ void normalize(const T* x, T* y, int columns) {
  const int start = blockIdx.x * columns;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += fabsf(widen(x[start + j]));
  const float mean = block_sum(sum) / columns;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    store(y + start + j, widen(x[start + j]) / mean);
  }
}

extern "C" void l1_norm(const void* x, void* y, int64_t rows, int64_t columns, int is_half, cudaStream_t stream) {
  const int n = static_cast<int>(columns);
  if (is_half) {
    normalize<<<rows, 256, 0, stream>>>(static_cast<const __half*>(x), static_cast<__half*>(y), n);
  } else {
    normalize<<<rows, 256, 0, stream>>>(static_cast<const float*>(x), static_cast<float*>(y), n);
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
