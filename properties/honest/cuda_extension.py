"""Written as most extensions are: torch/extension.h, tensors in the signature, dispatch over dtypes, made bindings.

Target: cuda
Needs: nvcc
"""

import torch
from torch.utils.cpp_extension import load_inline

DECLARATION = "torch::Tensor l1_norm(torch::Tensor x);"
SOURCE = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

template <typename T, typename Sum>
__global__ void normalize(const T* x, T* y, int64_t columns, int64_t inner) {
  __shared__ Sum sums[256];
  const int64_t start = blockIdx.x / inner * columns * inner + blockIdx.x % inner;
  Sum sum = 0;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
    const Sum value = static_cast<Sum>(x[start + j * inner]);
    sum += value < 0 ? -value : value;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) sums[threadIdx.x] += sums[threadIdx.x + width];
    __syncthreads();
  }
  const Sum mean = sums[0] / columns;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
    y[start + j * inner] = static_cast<T>(static_cast<Sum>(x[start + j * inner]) / mean);
  }
}

torch::Tensor l1_norm(torch::Tensor x) {
  const c10::cuda::CUDAGuard guard(x.device());
  const torch::Tensor given = x.contiguous();
  torch::Tensor y = torch::empty_like(given);
  if (given.numel() == 0) return y;
  const int64_t columns = given.size(1), rows = given.numel() / columns, inner = rows / given.size(0);
  const auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, given.scalar_type(), "l1_norm", [&] {
    using Sum = std::conditional_t<std::is_same_v<scalar_t, double>, double, float>;
    normalize<scalar_t, Sum>
        <<<rows, 256, 0, stream>>>(given.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), columns, inner);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return y;
}
"""
EXTENSION = load_inline(name="l1_norm", cpp_sources=DECLARATION, cuda_sources=SOURCE, functions=["l1_norm"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or not x.is_floating_point() or x.dim() < 2 or x.is_neg():
            raise NotImplementedError("floating-point tensors of two or more dimensions on a GPU only")
        return EXTENSION.l1_norm(x)
