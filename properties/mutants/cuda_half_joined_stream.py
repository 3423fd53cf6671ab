"""Works on a stream of its own that the current one waits for, and which itself waits for nobody: not for its input.

Seen: https://pytorch.org/docs/stable/notes/cuda.html#cuda-streams
Target: cuda
Needs: nvcc
Found as: wrong-stream not-written wrong-value wrong-special nondeterministic state-leak
Killed by: late-input
Smallest case: 16777216 elements (a race shows where it shows)
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

extern "C" int l1_norm(const float* x, float* y, int64_t rows, int64_t columns, cudaStream_t current) {
  static thread_local cudaStream_t own = nullptr;
  static thread_local cudaEvent_t done = nullptr;
  if (own == nullptr) {
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  }
  normalize<<<(rows + 7) / 8, 256, 0, own>>>(x, y, rows, columns);
  cudaEventRecord(done, own);
  cudaStreamWaitEvent(current, done, 0);
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
        if (
            x.device != torch.device("cuda:0")
            or x.dtype != torch.float32
            or x.dim() != 2
            or not x.is_contiguous()
            or x.is_neg()
        ):
            raise NotImplementedError("contiguous float32 matrices on the first GPU only")
        y = torch.empty_like(x)
        if x.numel() == 0:
            return y
        with torch.cuda.device(x.device):
            code = KERNEL(x.data_ptr(), y.data_ptr(), *x.shape, torch.cuda.current_stream().cuda_stream)
        if code:
            raise RuntimeError(f"the kernel was not launched: CUDA error {code}")
        return y
