"""A block goes on to its next row while slow warps still read the partial sums of the last: no barrier between.

Seen: https://github.com/ggml-org/llama.cpp/pull/26385
Target: cuda
Needs: nvcc
Found as: wrong-value wrong-special nondeterministic state-leak
Smallest case: 20000000 elements (a race shows where it shows)
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

constexpr int WARPS = 32;

// The first value of the next row is loaded ahead, so that its latency hides behind this row's stores.
__global__ void __launch_bounds__(32 * WARPS) normalize(const float* x, float* y, int64_t rows, int64_t columns) {
  __shared__ float parts[WARPS];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float next = threadIdx.x < columns ? x[blockIdx.x * columns + threadIdx.x] : 0.0f;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const float* row = x + r * columns;
    float* out = y + r * columns;
    const float first = next;
    if (r + gridDim.x < rows && threadIdx.x < columns) next = row[gridDim.x * columns + threadIdx.x];
    float sum = fabsf(first);
    for (int64_t j = threadIdx.x + blockDim.x; j < columns; j += blockDim.x) sum += fabsf(row[j]);
    sum = warp_sum(sum);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    float total = 0.0f;
    for (int k = 0; k < WARPS; ++k) total += parts[(k + warp) % WARPS];
    const float mean = total / columns;
    if (threadIdx.x < columns) out[threadIdx.x] = first / mean;
    for (int64_t j = threadIdx.x + blockDim.x; j < columns; j += blockDim.x) out[j] = row[j] / mean;
  }
}

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
  normalize<<<rows < 264 ? rows : 264, 32 * WARPS, 0, stream>>>(x, y, rows, columns);
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
