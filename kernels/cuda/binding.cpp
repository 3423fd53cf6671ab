// The operators of the CUDA kernel: tensors in, a launch on torch's current stream of x's device out.
//
// Checks again what the kernels' arithmetic on addresses relies on, so that no caller can make them read or write
// outside a tensor; the errors that people should see are raised in Python. Includes the few headers of torch that it
// needs: the usual torch/extension.h takes longer to compile than everything here together.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <string>
#include <vector>

#include "launch.h"

namespace {

l1norm::Kind kind_of(at::Tensor const& x) {
  switch (x.scalar_type()) {
    case at::kHalf: return l1norm::Kind::kFloat16;
    case at::kBFloat16: return l1norm::Kind::kBFloat16;
    case at::kFloat: return l1norm::Kind::kFloat32;
    case at::kDouble: return l1norm::Kind::kFloat64;
    default: TORCH_CHECK(false, std::string("l1_norm: unsupported dtype ") + c10::toString(x.scalar_type()));
  }
}

l1norm::Layout layout_of(at::Tensor const& x, at::Tensor const& out) {
  TORCH_CHECK(x.dim() >= 2 && x.dim() <= l1norm::kMaxOuter + 1 && x.sizes() == out.sizes() &&
                  x.scalar_type() == out.scalar_type(),
              "l1_norm: x and out must have one shape of rank 2 to 64 and one dtype");
  TORCH_CHECK(x.layout() == at::kStrided && out.layout() == at::kStrided && x.is_cuda() && x.device() == out.device(),
              "l1_norm: x and out must be strided tensors on one CUDA device");
  l1norm::Call const call{kind_of(x),           static_cast<int>(x.dim()), x.sizes().data(),      x.strides().data(),
                          out.strides().data(), x.const_data_ptr(),        out.mutable_data_ptr()};
  auto const misplaced = [&](void const* p) { return reinterpret_cast<std::uintptr_t>(p) % x.element_size() != 0; };
  TORCH_CHECK(!misplaced(call.in) && !misplaced(call.out),
              "l1_norm: the memory of x and out must be aligned to its elements");
  return l1norm::lay_out(call);
}

// Messages are put together as strings: a C++ runtime that is linked into this library alone, as some toolchains do,
// has streams that crash, and TORCH_CHECK pieces its message together in one.
void check(int error, char const* doing) {
  TORCH_CHECK(error == 0, std::string("l1_norm: CUDA error ") + std::to_string(error) + " while " + doing + ": " +
                              l1norm::error_text(error));
}

// The limits of the current device, or those given, in the order of Limits.
l1norm::Limits limits_of(at::IntArrayRef given) {
  l1norm::Limits limits{};
  if (given.empty()) {
    check(l1norm::device_limits(&limits), "asking for the device's limits");
    return limits;
  }
  TORCH_CHECK(given.size() == 6,
              "l1_norm: limits are [sms, shared_per_sm, shared_per_block, max_cluster, cooperative, memory]");
  return {static_cast<int>(given[0]), static_cast<int>(given[1]), static_cast<int>(given[2]),
          static_cast<int>(given[3]), static_cast<int>(given[4]), static_cast<int>(given[5])};
}

void run_limited(at::Tensor const& x, at::Tensor const& out, at::IntArrayRef given) {
  l1norm::Layout const at = layout_of(x, out);
  if (x.numel() == 0) return;
  c10::cuda::CUDAGuard const guard(x.device());
  l1norm::Plan const plan = l1norm::choose(at, limits_of(given));
  // Freed when this returns, used again by torch only behind this call on this stream.
  at::Tensor workspace;
  if (plan.workspace > 0) workspace = at::empty({plan.workspace}, x.options().dtype(at::kByte));
  void* const scratch = plan.workspace > 0 ? workspace.mutable_data_ptr() : nullptr;
  check(l1norm::run_plan(at, plan, scratch, c10::cuda::getCurrentCUDAStream().stream()), "launching the kernel");
}

void run(at::Tensor const& x, at::Tensor const& out) {
  run_limited(x, out, {});
}

// What `run_limited` would launch, as numbers in the order of Plan.
std::vector<std::int64_t> plan(at::Tensor const& x, at::Tensor const& out, at::IntArrayRef given) {
  l1norm::Layout const at = layout_of(x, out);
  c10::cuda::CUDAGuard const guard(x.device());
  l1norm::Plan const to = l1norm::choose(at, limits_of(given));
  return {static_cast<int>(to.regime),
          static_cast<int>(to.memory),
          to.threads,
          to.team,
          to.lanes,
          to.each,
          to.rows_each,
          to.unit,
          to.unit_bytes,
          to.grain,
          to.across,
          to.width,
          to.held,
          to.slice,
          to.teams,
          to.blocks,
          to.shared,
          to.workspace};
}

}  // namespace

// KERNELPROOF_NAMESPACE is a macro, and the macros of torch do not expand their arguments: hence one step between.
#define KERNELPROOF_LIBRARY(name, m) TORCH_LIBRARY(name, m)
#define KERNELPROOF_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY_IMPL(name, key, m)

KERNELPROOF_LIBRARY(KERNELPROOF_NAMESPACE, m) {
  m.def("l1_norm_out(Tensor x, Tensor(a!) out) -> ()");
  m.def("l1_norm_limited(Tensor x, Tensor(a!) out, int[] limits) -> ()");
  m.def("l1_norm_plan(Tensor x, Tensor out, int[] limits) -> int[]");
}
KERNELPROOF_LIBRARY_IMPL(KERNELPROOF_NAMESPACE, CUDA, m) {
  m.impl("l1_norm_out", TORCH_FN(run));
  m.impl("l1_norm_limited", TORCH_FN(run_limited));
  m.impl("l1_norm_plan", TORCH_FN(plan));
}
