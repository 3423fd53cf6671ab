// Rows that the chip cannot hold, of any length, and rows of devices whose blocks may not wait for each other: two
// sweeps over memory, a launch each. The first adds up chunks of a row, the second scales them.
//
// A block takes one chunk and leaves, so that fast parts of the chip do more of them. The second sweep goes backwards:
// it begins with what the L2 cache still has. (Reads and writes marked as needed only once, to keep more of it there,
// were 1 % slower.)
#pragma once

#include "geometry.h"
#include "slice.cuh"
#include "team.cuh"

namespace l1norm {

// Threads of an SM that the registers must leave room for: in the first sweep, where each has a few vectors, and in the
// second.
constexpr int kSumThreads = 1024;
template <Memory kMemory> constexpr int kScaleThreads = kMemory == Memory::kFast ? 1024 : 1536;
template <Memory kMemory> constexpr SweepShape kSweepShape = sweep_shape(kMemory);
constexpr int kSweepGroup = 256;  // chunks that are added up together

struct SweepArgs {
  Rows<kFewOuter> rows;
  std::int64_t first;   // row of this launch
  std::int64_t chunks;  // of a row
  std::int64_t groups;  // of chunks
  std::int64_t shares;  // of a row, in the second sweep
  int chunk;            // vectors of one, a multiple of a line
  unsigned* counters;   // of each row 1 + groups, zero before and after
  void* sums;           // of each row 1 + groups + chunks: its own, its groups', its chunks'
};

// Adds up the `members` sums of as many blocks, in the order of their places, in the block that comes last: it gets the
// total, and true. The counter is zero before and after.
template <typename Sum, int kThreads> struct LastBlock {
  Sum warps[kThreads / kWarp];
  unsigned before;

  __device__ bool adds_up(Sum& sum, Sum* sums, std::int64_t place, std::int64_t members, unsigned* counter) {
    int const thread = static_cast<int>(threadIdx.x);
    if (thread == 0) {
      __stcg(&sums[place], sum);
      before = count_up(counter);
    }
    __syncthreads();
    if (before != members - 1) return false;
    if (thread == 0) *counter = 0;
    sum = 0;
#pragma unroll 4
    for (std::int64_t i = thread; i < members; i += kThreads) sum += __ldcg(&sums[i]);
    sum = block_sum(sum, warps);
    return true;
  }
};

template <typename T, Memory kMemory>
__global__ void __launch_bounds__(kSweepShape<kMemory>.sum_threads, kSumThreads / kSweepShape<kMemory>.sum_threads)
    sweep_sums(SweepArgs const args) {
  using Sum = SumOf<T>;
  constexpr int kThreads = kSweepShape<kMemory>.sum_threads;
  constexpr int kFlying = kSweepShape<kMemory>.sum_flying;
  __shared__ Sum warps[kThreads / kWarp];
  __shared__ LastBlock<Sum, kThreads> last[2];
  let_next_begin();
  int const thread = static_cast<int>(threadIdx.x);
  std::int64_t const row = divide(blockIdx.x, args.chunks);
  std::int64_t const chunk = blockIdx.x - row * args.chunks;
  Slice<T> const slice = slice_of<T>(args.rows, args.first + row, chunk, args.chunk);
  Places const places{slice.begin, slice.end};
  wait_for_previous();

  // The first chunk has the row's edges, one to a thread.
  Sum sum = 0;
  if (chunk == 0 && thread < slice.row.edges())
    sum = magnitude(Numeric<T>::widen(slice.row.in[slice.row.edge(thread, args.rows.columns)]));
  for (int i = thread; i < places.end; i += kFlying * kThreads) {
    uint4 v[kFlying];
#pragma unroll
    for (int k = 0; k < kFlying; ++k) {
      int const at = i + k * kThreads;
      v[k] = load16_if<kKeepRead<kMemory>>(places.has(at), slice.in + at * kPerVector<T>);
    }
    Sum part[kFlying];
#pragma unroll
    for (int k = 0; k < kFlying; ++k) part[k] = abs_sum<T>(v[k]);
    sum += tree_sum<kFlying>(part);
  }
  sum = block_sum(sum, warps);

  unsigned* const counters = args.counters + row * (1 + args.groups);
  Sum* const row_sum = static_cast<Sum*>(args.sums) + row * (1 + args.groups + args.chunks);
  Sum* const group_sums = row_sum + 1;
  Sum* const chunk_sums = group_sums + args.groups;
  std::int64_t const group = chunk / kSweepGroup;
  std::int64_t const before = group * kSweepGroup;
  std::int64_t const members = args.chunks - before < kSweepGroup ? args.chunks - before : kSweepGroup;
  if (!last[0].adds_up(sum, chunk_sums + before, chunk - before, members, &counters[1 + group])) return;
  if (!last[1].adds_up(sum, group_sums, group, args.groups, &counters[0])) return;
  if (thread == 0) *row_sum = sum;
}

// A block scales a share of a row, smaller than a chunk, in one go: it loads and stores nothing twice over, and leaves.
template <typename T, Memory kMemory>
__global__ void __launch_bounds__(kSweepShape<kMemory>.scale_threads,
                                  kScaleThreads<kMemory> / kSweepShape<kMemory>.scale_threads)
    sweep_scales(SweepArgs const args) {
  using Sum = SumOf<T>;
  constexpr int kThreads = kSweepShape<kMemory>.scale_threads;
  constexpr int kEach = kSweepShape<kMemory>.scale_each;
  let_next_begin();
  int const thread = static_cast<int>(threadIdx.x);
  std::int64_t const block = gridDim.x - 1 - blockIdx.x;
  std::int64_t const row = divide(block, args.shares);
  std::int64_t const share = block - row * args.shares;
  Slice<T> const slice = slice_of<T>(args.rows, args.first + row, share, kThreads * kEach);
  Places const places{slice.begin, slice.end};
  wait_for_previous();

  uint4 v[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    int const at = thread + k * kThreads;
    v[k] = load16_if<kKeepRead<kMemory>>(places.has(at), slice.in + at * kPerVector<T>);
  }
  Sum const total = __ldcg(static_cast<Sum const*>(args.sums) + row * (1 + args.groups + args.chunks));
  RowScale<Sum> const scale = row_scale(total, static_cast<Sum>(args.rows.columns));
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    int const at = thread + k * kThreads;
    if (places.has(at)) store_vector<T>(slice, at, v[k], scale);
  }
  if (share == 0 && thread < slice.row.edges()) {
    std::int64_t const column = slice.row.edge(thread, args.rows.columns);
    slice.row.out[column] = Numeric<T>::narrow(quotient(Numeric<T>::widen(slice.row.in[column]), scale));
  }
}

}  // namespace l1norm
