"""Threads share one static scratch for the mean, so that rows take each other's.

Seen: https://github.com/ggml-org/llama.cpp/pull/26385
Target: cpu
Found as: wrong-value wrong-special nondeterministic state-leak
Smallest case: 1048576 elements (a race shows where it shows)
Replay: passes
"""

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

static volatile float scratch;

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns) {
  const auto work = [=](int64_t first) {
    for (int64_t row = first; row < rows; row += 4) {
      double sum = 0;
      for (int64_t j = 0; j < columns; ++j) sum += std::fabs(x[row * columns + j]);
      scratch = static_cast<float>(sum / columns);
      std::this_thread::yield();
      for (int64_t j = 0; j < columns; ++j) y[row * columns + j] = x[row * columns + j] / scratch;
    }
  };
  std::vector<std::thread> threads;
  for (int64_t first = 0; first < 4; ++first) threads.emplace_back(work, first);
  for (auto& thread : threads) thread.join();
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
