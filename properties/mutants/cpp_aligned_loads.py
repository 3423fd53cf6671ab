"""Loads 16 bytes at a time as if every row began at a 16-byte boundary.

Seen: float4 loads on rows of any length
Target: cpu
Found as: crash
"""

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
#include <cstdint>

typedef float Four __attribute__((vector_size(16)));

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    double sum = 0;
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      const Four loaded = *static_cast<const volatile Four*>(reinterpret_cast<const Four*>(x + j));
      for (int k = 0; k < 4; ++k) sum += std::fabs(loaded[k]);
    }
    for (; j < columns; ++j) sum += std::fabs(x[j]);
    const float mean = static_cast<float>(sum / columns);
    for (j = 0; j < columns; ++j) y[j] = x[j] / mean;
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
