"""Adds up in the storage type: a float16 sum sticks at 2048.

Seen: https://github.com/microsoft/onnxruntime/issues/29034
Target: cpu
Found as: wrong-value wrong-special
"""

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>

extern "C" void l1_norm(const _Float16* x, _Float16* y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    _Float16 sum = 0;
    for (int64_t j = 0; j < columns; ++j) sum += x[j] < 0 ? -x[j] : x[j];
    const float mean = static_cast<float>(sum) / columns;
    for (int64_t j = 0; j < columns; ++j) y[j] = static_cast<_Float16>(x[j] / mean);
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
        if x.dtype not in (torch.float16, torch.float32) or x.dim() != 2 or not x.is_contiguous():
            raise NotImplementedError("contiguous float16 and float32 matrices only")
        if x.dtype == torch.float32:
            return x / x.abs().mean(1, keepdim=True)
        y = torch.empty_like(x)
        KERNEL(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), *map(ctypes.c_int64, x.shape))
        return y
