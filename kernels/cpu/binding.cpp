// The operators for CPU tensors: l1_norm_out(x, out) turns tensors into a Problem and picks the storage type;
// prefer_huge_pages(fresh) takes a dense tensor that nobody has written to yet.
//
// Checks again what its arithmetic on addresses relies on, so that no caller can make it read or write outside a tensor;
// the errors that people should see are raised in Python. Registers through torch's stable C interface (torch 2.9 and
// later): its headers take 1 s to compile where torch/library.h and ATen/core/Tensor.h take 9, torch/extension.h 25.
#include <ATen/Parallel.h>
#include <torch/csrc/stable/library.h>

#include <stdexcept>

#include "l1_norm.h"
#include "pages.h"

namespace {

// One argument of a call. The caller hands over the reference that it holds.
class Tensor {
 public:
  explicit Tensor(StableIValue argument) {
    std::memcpy(&handle_, &argument, sizeof handle_);
    const bool failed = aoti_torch_get_dim(handle_, &rank) || aoti_torch_get_sizes(handle_, &size) ||
                        aoti_torch_get_strides(handle_, &stride) || aoti_torch_get_dtype(handle_, &dtype) ||
                        aoti_torch_get_data_ptr(handle_, &data);
    if (failed) throw std::runtime_error("l1_norm_out: x and out must be strided CPU tensors");
  }
  ~Tensor() { aoti_torch_delete_tensor_object(handle_); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  int64_t rank;
  int64_t* size;
  int64_t* stride;
  int32_t dtype;
  void* data;

 private:
  AtenTensorHandle handle_;
};

// The rows: every dimension but dim 1, those of size 1 left out, neighbours joined where both tensors allow it.
std::vector<Axis> row_axes(const Tensor& x, const Tensor& out) {
  std::vector<Axis> axes;
  for (int64_t d = 0; d < x.rank; ++d) {
    if (d != 1 && x.size[d] != 1) axes.push_back({x.size[d], x.stride[d], out.stride[d]});
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

struct AtenParallelFor {
  template <class Body>
  void operator()(int64_t begin, int64_t end, int64_t least, const Body& body) const {
    at::parallel_for(begin, end, least, body);
  }
};

void l1_norm_out(const Tensor& x, const Tensor& out) {
  bool same = x.rank >= 2 && x.rank == out.rank && x.dtype == out.dtype;
  bool empty = false;
  for (int64_t d = 0; same && d < x.rank; ++d) {
    same = x.size[d] == out.size[d];
    empty = empty || x.size[d] == 0;
  }
  if (!same) throw std::runtime_error("l1_norm_out: x and out must have one shape of rank >= 2 and one dtype");
  if (empty) return;
  const bool one_column = x.size[1] == 1;
  const Problem problem{x.data, out.data, x.size[1], one_column ? 1 : x.stride[1], one_column ? 1 : out.stride[1],
                        row_axes(x, out)};
  const int threads = at::get_num_threads();
  if (x.dtype == aoti_torch_dtype_float32()) return l1_norm<Float>(problem, threads, AtenParallelFor{});
  if (x.dtype == aoti_torch_dtype_float64()) return l1_norm<Double>(problem, threads, AtenParallelFor{});
  if (x.dtype == aoti_torch_dtype_float16()) return l1_norm<Half>(problem, threads, AtenParallelFor{});
  if (x.dtype == aoti_torch_dtype_bfloat16()) return l1_norm<Bfloat>(problem, threads, AtenParallelFor{});
  throw std::runtime_error("l1_norm_out: unsupported dtype");
}

void boxed_l1_norm_out(StableIValue* arguments, uint64_t /*inputs*/, uint64_t /*outputs*/) {
  const Tensor x(arguments[0]);
  const Tensor out(arguments[1]);
  l1_norm_out(x, out);
}

void boxed_prefer_huge_pages(StableIValue* arguments, uint64_t /*inputs*/, uint64_t /*outputs*/) {
  const Tensor fresh(arguments[0]);
  size_t bytes = aoti_torch_dtype_element_size(fresh.dtype);
  for (int64_t d = 0; d < fresh.rank; ++d) bytes *= fresh.size[d];
  prefer_huge_pages(fresh.data, bytes);
}

}  // namespace

// KERNELPROOF_NAMESPACE is a macro, and the macros of torch do not expand their arguments: hence one step between.
#define KERNELPROOF_LIBRARY(name, m) STABLE_TORCH_LIBRARY(name, m)
#define KERNELPROOF_LIBRARY_IMPL(name, key, m) STABLE_TORCH_LIBRARY_IMPL(name, key, m)

KERNELPROOF_LIBRARY(KERNELPROOF_NAMESPACE, m) {
  m.def("l1_norm_out(Tensor x, Tensor(a!) out) -> ()");
  m.def("prefer_huge_pages(Tensor fresh) -> ()");
}
KERNELPROOF_LIBRARY_IMPL(KERNELPROOF_NAMESPACE, CPU, m) {
  m.impl("l1_norm_out", boxed_l1_norm_out);
  m.impl("prefer_huge_pages", boxed_prefer_huge_pages);
}
