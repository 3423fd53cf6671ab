"""Scalar head up to a multiple of 16 bytes, float4 body, scalar tail: loads and stores, each by its own address.

Target: cuda
Needs: nvcc
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

// Elements in front of the first multiple of 16 bytes.
__device__ int64_t head(const float* row, int64_t columns) {
  const int64_t before = (16 - reinterpret_cast<uintptr_t>(row) % 16) % 16 / sizeof(float);
  return before < columns ? before : columns;
}

__global__ void normalize(const float* x, float* y, int64_t columns) {
  const float* row = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  const int64_t first = head(row, columns), vectors = (columns - first) / 4, last = first + 4 * vectors;
  const float4* body = reinterpret_cast<const float4*>(row + first);
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < first; j += blockDim.x) sum += fabsf(row[j]);
  for (int64_t j = threadIdx.x; j < vectors; j += blockDim.x) {
    const float4 v = body[j];
    sum += fabsf(v.x) + fabsf(v.y) + fabsf(v.z) + fabsf(v.w);
  }
  for (int64_t j = last + threadIdx.x; j < columns; j += blockDim.x) sum += fabsf(row[j]);
  const float mean = block_sum(sum) / columns;

  if (head(out, columns) != first) {  // input and output lie differently
    for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) out[j] = row[j] / mean;
    return;
  }
  float4* written = reinterpret_cast<float4*>(out + first);
  for (int64_t j = threadIdx.x; j < first; j += blockDim.x) out[j] = row[j] / mean;
  for (int64_t j = threadIdx.x; j < vectors; j += blockDim.x) {
    const float4 v = body[j];
    written[j] = make_float4(v.x / mean, v.y / mean, v.z / mean, v.w / mean);
  }
  for (int64_t j = last + threadIdx.x; j < columns; j += blockDim.x) out[j] = row[j] / mean;
}

extern "C" int l1_norm(const float* x, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
  normalize<<<rows, 256, 0, stream>>>(x, y, columns);
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
KERNEL.argtypes = [c_void_p, c_void_p, c_int64, c_int64, c_void_p]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous() or x.is_neg():
            raise NotImplementedError("contiguous float32 matrices on a GPU only")
        y = torch.empty_like(x)
        if x.numel() == 0:
            return y
        with torch.cuda.device(x.device):
            code = KERNEL(x.data_ptr(), y.data_ptr(), *x.shape, torch.cuda.current_stream().cuda_stream)
        if code:
            raise RuntimeError(f"the kernel was not launched: CUDA error {code}")
        return y
