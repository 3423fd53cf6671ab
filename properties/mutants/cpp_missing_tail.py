"""Eight columns at a time and no tail: sums and writes whole blocks only.

Seen: seen in a public generated kernel
Target: cpu
Found as: not-written
"""

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    double sum = 0;
    for (int64_t block = 0; block + 8 <= columns; block += 8)
      for (int64_t j = block; j < block + 8; ++j) sum += std::fabs(x[j]);
    const float mean = static_cast<float>(sum / columns);
    for (int64_t block = 0; block + 8 <= columns; block += 8)
      for (int64_t j = block; j < block + 8; ++j) y[j] = x[j] / mean;
  }
}
"""
LIBRARY = load_inline(
    name="l1_norm",
    cpp_sources=SOURCE,
    functions=None,
    is_python_module=False,
    no_implicit_headers=True,
)
KERNEL = ctypes.CDLL(LIBRARY).l1_norm


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous():
            raise NotImplementedError("contiguous float32 matrices only")
        y = torch.empty_like(x)
        KERNEL(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), *map(ctypes.c_int64, x.shape))
        return y
