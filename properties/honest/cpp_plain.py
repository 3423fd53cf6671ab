"""Two plain passes in C++ over whatever strides a matrix has.

Target: cpu
"""

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void l1_norm(const float* x, float* y, const int64_t* sizes, const int64_t* strides) {
  for (int64_t row = 0; row < sizes[0]; ++row) {
    const float* given = x + row * strides[0];
    double sum = 0;
    for (int64_t j = 0; j < sizes[1]; ++j) sum += std::fabs(given[j * strides[1]]);
    const float mean = static_cast<float>(sum / sizes[1]);
    for (int64_t j = 0; j < sizes[1]; ++j) y[row * sizes[1] + j] = given[j * strides[1]] / mean;
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
        if x.dtype != torch.float32 or x.dim() != 2:
            raise NotImplementedError("float32 matrices only")
        x = x.resolve_neg()
        y = torch.empty(x.shape, dtype=x.dtype)
        pair = ctypes.c_int64 * 2
        KERNEL(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), pair(*x.shape), pair(*x.stride()))
        return y
