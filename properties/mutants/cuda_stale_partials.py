"""Adds up 64 partial sums a row, of which short rows write but the first: the others are those of a longer row before.

Seen: workspace reuse in generated kernels
Target: cuda
Needs: nvcc
Found as: state-leak wrong-value wrong-special
Smallest case: 20000000 elements (what comes after the longer rows)
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

constexpr int MOST = 64;
constexpr int64_t CHUNK = 4096;

__global__ void add(const float* x, int64_t columns, int64_t chunk, float* parts) {
  const float* row = x + blockIdx.x * columns;
  const int64_t start = blockIdx.y * chunk, end = start + chunk < columns ? start + chunk : columns;
  float sum = 0.0f;
  for (int64_t j = start + threadIdx.x; j < end; j += blockDim.x) sum += fabsf(row[j]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x * MOST + blockIdx.y] = sum;
}

__global__ void divide(const float* x, float* y, int64_t columns, const float* parts) {
  const float* row = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  float sum = 0.0f;
  for (int k = 0; k < MOST; ++k) sum += parts[blockIdx.x * MOST + k];
  const float mean = sum / columns;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) out[j] = row[j] / mean;
}

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns, float* parts, cudaStream_t stream) {
  const int64_t needed = (columns + CHUNK - 1) / CHUNK, chunks = needed < MOST ? needed : MOST;
  add<<<dim3(rows, chunks), 256, 0, stream>>>(x, columns, (columns + chunks - 1) / chunks, parts);
  divide<<<rows, 256, 0, stream>>>(x, y, columns, parts);
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
            parts = self.__dict__.get("parts")
            if parts is None or len(parts) < 64 * len(x):
                parts = self.parts = torch.zeros(64 * len(x), device=x.device)
            KERNEL(x.data_ptr(), y.data_ptr(), *x.shape, parts.data_ptr(), torch.cuda.current_stream().cuda_stream)
        return y
