"""A tree that halves its width, and so drops an element wherever the width is odd.

Seen: https://github.com/kaldi-asr/kaldi/issues/3036
Target: cpu
Found as: wrong-value
"""

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns) {
  if (columns == 0) return;
  std::vector<double> tree(columns);
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    for (int64_t j = 0; j < columns; ++j) tree[j] = std::fabs(x[j]);
    for (int64_t width = columns / 2; width > 0; width /= 2)
      for (int64_t j = 0; j < width; ++j) tree[j] += tree[j + width];
    const float mean = static_cast<float>(tree[0] / columns);
    for (int64_t j = 0; j < columns; ++j) y[j] = x[j] / mean;
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
