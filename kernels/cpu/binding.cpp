// The operator l1_norm_out(x, out) for CPU tensors: turns tensors into a Problem and picks the storage type.
//
// Checks again what its arithmetic on addresses relies on, so that no caller can make it read or write outside a tensor;
// the errors that people should see are raised in Python. Includes the few headers of torch that it needs: the usual
// torch/extension.h takes five times as long to compile.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "l1_norm.h"

namespace {

// The rows: every dimension but dim 1, those of size 1 left out, neighbours joined where both tensors allow it.
std::vector<Axis> row_axes(const at::Tensor& x, const at::Tensor& out) {
  std::vector<Axis> axes;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != 1 && x.size(d) != 1) axes.push_back({x.size(d), x.stride(d), out.stride(d)});
  }
  // The order of the rows is free: the closest in the output go innermost.
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.y > b.y; });
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    if (!joined.empty() && joined.back().x == axis.x * axis.size && joined.back().y == axis.y * axis.size) {
      joined.back() = {joined.back().size * axis.size, axis.x, axis.y};
    } else {
      joined.push_back(axis);
    }
  }
  if (joined.empty()) joined.push_back({1, 0, 0});
  return joined;
}

void l1_norm_out(const at::Tensor& x, const at::Tensor& out) {
  TORCH_CHECK(x.dim() >= 2 && x.sizes() == out.sizes() && x.scalar_type() == out.scalar_type(),
              "l1_norm_out: x and out must have one shape of rank >= 2 and one dtype");
  TORCH_CHECK(x.layout() == at::kStrided && out.layout() == at::kStrided && out.device().is_cpu(),
              "l1_norm_out: x and out must be strided CPU tensors");
  if (x.numel() == 0) return;
  const bool one_column = x.size(1) == 1;
  const Problem problem{x.const_data_ptr(), out.mutable_data_ptr(), x.size(1), one_column ? 1 : x.stride(1),
                        one_column ? 1 : out.stride(1), row_axes(x, out)};
  const int threads = at::get_num_threads();
  const auto parallel_for = [](int64_t begin, int64_t end, int64_t least, const auto& body) {
    at::parallel_for(begin, end, least, body);
  };
  switch (x.scalar_type()) {
    case at::kFloat:
      return l1_norm<Float>(problem, threads, parallel_for);
    case at::kDouble:
      return l1_norm<Double>(problem, threads, parallel_for);
    case at::kHalf:
      return l1_norm<Half>(problem, threads, parallel_for);
    case at::kBFloat16:
      return l1_norm<Bfloat>(problem, threads, parallel_for);
    default:
      TORCH_CHECK(false, "l1_norm_out: unsupported dtype ", x.scalar_type());
  }
}

}  // namespace

// KERNELPROOF_NAMESPACE is a macro, and the macros of torch do not expand their arguments: hence one step between.
#define KERNELPROOF_LIBRARY(name, m) TORCH_LIBRARY(name, m)
#define KERNELPROOF_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY_IMPL(name, key, m)

KERNELPROOF_LIBRARY(KERNELPROOF_NAMESPACE, m) { m.def("l1_norm_out(Tensor x, Tensor(a!) out) -> ()"); }
KERNELPROOF_LIBRARY_IMPL(KERNELPROOF_NAMESPACE, CPU, m) { m.impl("l1_norm_out", TORCH_FN(l1_norm_out)); }
