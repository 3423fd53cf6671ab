"""Any strides: neighbouring threads take neighbouring rows, which is the fast way through a transposed matrix.

Target: cuda
Needs: nvcc
"""

from ctypes import CDLL, c_int64, c_void_p

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>

__global__ void normalize(const float* x, float* y, int64_t rows, int64_t columns, int64_t pitch, int64_t step) {
  __shared__ float sums[8][33];
  const int64_t r = blockIdx.x * int64_t{32} + threadIdx.x;
  const float* row = x + (r < rows ? r : 0) * pitch;
  float sum = 0.0f;
  for (int64_t j = threadIdx.y; j < columns; j += 8) sum += fabsf(row[j * step]);
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int k = 0; k < 8; ++k) total += sums[k][threadIdx.x];
  const float mean = total / columns;
  if (r >= rows) return;
  for (int64_t j = threadIdx.y; j < columns; j += 8) y[j * rows + r] = row[j * step] / mean;
}

extern "C" int l1_norm(const float* x, float* y, int64_t rows, int64_t columns, int64_t pitch, int64_t step,
                       cudaStream_t stream) {
  normalize<<<(rows + 31) / 32, dim3(32, 8), 0, stream>>>(x, y, rows, columns, pitch, step);
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
KERNEL.argtypes = [c_void_p, c_void_p, c_int64, c_int64, c_int64, c_int64, c_void_p]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or x.dtype != torch.float32 or x.dim() != 2 or x.is_neg():
            raise NotImplementedError("float32 matrices on a GPU only")
        y = torch.empty(x.shape[::-1], device=x.device).t()  # column-major, as it is written
        if x.numel() == 0:
            return y
        with torch.cuda.device(x.device):
            stream = torch.cuda.current_stream().cuda_stream
            code = KERNEL(x.data_ptr(), y.data_ptr(), *x.shape, *x.stride(), stream)
        if code:
            raise RuntimeError(f"the kernel was not launched: CUDA error {code}")
        return y
