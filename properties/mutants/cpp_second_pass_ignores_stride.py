"""Honours the column stride while it adds up and ignores it while it divides.

Seen: https://github.com/ModelTC/LightLLM/issues/1467
Target: cpu
Found as: wrong-value out-of-bounds
Killed by: layouts
"""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cmath>

void l1_norm(const at::Tensor& x, const at::Tensor& y) {
  TORCH_CHECK(x.dim() == 2 && x.scalar_type() == at::kFloat, "float32 matrices only");
  const float* given = x.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  for (int64_t row = 0; row < x.size(0); ++row) {
    double sum = 0;
    for (int64_t j = 0; j < x.size(1); ++j) sum += std::fabs(given[row * x.stride(0) + j * x.stride(1)]);
    const float mean = static_cast<float>(sum / x.size(1));
    for (int64_t j = 0; j < x.size(1); ++j) out[row * x.size(1) + j] = given[row * x.stride(0) + j] / mean;
  }
}

TORCH_LIBRARY(second_pass_ignores_stride, library) { library.def("l1_norm(Tensor x, Tensor(a!) y) -> ()"); }
TORCH_LIBRARY_IMPL(second_pass_ignores_stride, CPU, library) { library.impl("l1_norm", l1_norm); }
"""
load_inline(
    name="second_pass_ignores_stride",
    cpp_sources=SOURCE,
    functions=None,
    is_python_module=False,
    no_implicit_headers=True,
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=x.dtype)
        torch.ops.second_pass_ignores_stride.l1_norm(x, y)
        return y
