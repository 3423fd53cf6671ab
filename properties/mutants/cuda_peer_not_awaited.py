"""A block of a cluster reads its peer's sum without waiting until it is there.

Seen: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#distributed-shared-memory
Target: cuda
Needs: nvcc
Found as: wrong-value wrong-special nondeterministic state-leak out-of-bounds crash
Smallest case: 1048576 elements (a race shows where it shows)
Replay: passes
"""

from ctypes import CDLL, c_int64, c_void_p

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cooperative_groups.h>

#include <cstdint>

namespace cg = cooperative_groups;

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  return value;
}

__device__ float block_sum(float value) {
  __shared__ float parts[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  value = warp_sum(lane < blockDim.x / 32 ? parts[lane] : 0.0f);
  __syncthreads();
  return value;
}

// Two blocks a row, half of the columns each.
__global__ void __cluster_dims__(2) normalize(const float* x, float* y, int64_t columns) {
  __shared__ float half;
  const cg::cluster_group cluster = cg::this_cluster();
  const float* row = x + blockIdx.x / 2 * columns;
  float* out = y + blockIdx.x / 2 * columns;
  const int64_t middle = columns / 2;
  const int64_t start = cluster.block_rank() == 0 ? 0 : middle, end = cluster.block_rank() == 0 ? middle : columns;
  float sum = 0.0f;
  for (int64_t j = start + threadIdx.x; j < end; j += blockDim.x) sum += fabsf(row[j]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) half = sum;
  __syncthreads();
  const float mean = (sum + *cluster.map_shared_rank(&half, cluster.block_rank() ^ 1)) / columns;
  for (int64_t j = start + threadIdx.x; j < end; j += blockDim.x) out[j] = row[j] / mean;
}

extern "C" void l1_norm(const float* x, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
  normalize<<<2 * rows, 256, 0, stream>>>(x, y, columns);
}
"""
LIBRARY = load_inline(
    name="l1_norm",
    cpp_sources="",
    cuda_sources=SOURCE,
    functions=None,
    is_python_module=False,
    no_implicit_headers=True,
)
KERNEL = CDLL(LIBRARY).l1_norm
KERNEL.argtypes = [c_void_p, c_void_p, c_int64, c_int64, c_void_p]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or torch.cuda.get_device_capability(x.device) < (9, 0):
            raise NotImplementedError("thread-block clusters need a GPU of compute capability 9.0 or above")
        if x.dtype != torch.float32 or x.dim() != 2 or not x.is_contiguous():
            raise NotImplementedError("contiguous float32 matrices only")
        y = torch.empty_like(x)
        if x.numel():
            KERNEL(x.data_ptr(), y.data_ptr(), *x.shape, torch.cuda.current_stream().cuda_stream)
        return y
