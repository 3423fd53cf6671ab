// Dim 1 is not the innermost: the elements of a row lie a stride apart, and neighbours in memory belong to different rows.
//
// A tile is a strip of neighbouring rows. Lanes lie along the strip, so a warp reads neighbouring elements; the threads behind each other,
// and the blocks of a cluster, share out the columns. A thread holds its elements in registers, so a strip is read once while its columns
// fit; longer ones are read twice, the second time backwards.
#pragma once

#include "rows.cuh"
#include "team.cuh"

namespace l1norm {

constexpr int kColumnThreads = 512;
constexpr int kShallow = 4;            // elements a thread holds where a row has few columns
template <typename T> constexpr int kDeep = sizeof(T) == 8 ? 16 : 32;  // and where it has many: 64 KB a block, two blocks an SM
constexpr int kColumnSums = 1024;  // partial sums that blocks of a cluster exchange: 16 blocks x 64 rows

struct ColumnArgs {
  void const* in;
  void* out;
  std::int64_t columns;
  std::int64_t column_in;
  std::int64_t column_out;
  std::int64_t strip;   // neighbouring rows, with stride 1 in both tensors
  std::int64_t strips;  // tiles along them
  std::int64_t tiles;   // tiles in all
  OuterDims<kFewOuter> outer;  // the other dimensions
  int across_log2;      // rows of a tile, a power of two
  int team;             // blocks that share a tile's columns
  std::int64_t chunks;  // a tile's columns over what its team holds at once, rounded up
};

template <typename T, int kEach, Team kTeam>
__global__ void __launch_bounds__(kColumnThreads, 2) column_tiles(ColumnArgs const args) {
  using Sum = SumOf<T>;
  __shared__ Sum partial[kColumnThreads];
  __shared__ Sum exchanged[kColumnSums];
  int const across = 1 << args.across_log2;
  int const x = static_cast<int>(threadIdx.x) & (across - 1);
  int const y = static_cast<int>(threadIdx.x) >> args.across_log2;
  int const deep = kColumnThreads >> args.across_log2;  // threads behind each other
  TeamPlace const place = team_place(args.team);
  int const stride = deep * place.size;  // columns between a thread's elements
  int const chunk = stride * kEach;      // columns that the team holds at once

  for (std::int64_t tile = place.team; tile < args.tiles; tile += place.teams) {
    std::int64_t const outer = tile / args.strips;
    std::int64_t const row = (tile - outer * args.strips) * across + x;
    bool const live = row < args.strip;
    Offsets const at = offsets(args.outer, outer);
    T const* const in = static_cast<T const*>(args.in) + at.in + row;
    T* const out = static_cast<T*>(args.out) + at.out + row;
    std::int64_t const start = static_cast<std::int64_t>(place.rank) * deep + y;

    // Columns from `from` to the last one, none beside the strip; more than a chunk counts as a chunk.
    auto const columns_left = [&](std::int64_t from) {
      std::int64_t const left = live ? args.columns - from : 0;
      return static_cast<int>(left < chunk ? left : chunk);
    };
    T held[kEach];
    auto const fetch = [&](std::int64_t from) {
      T const* at = in + from * args.column_in;
      int const left = columns_left(from);
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        held[k] = k * stride < left ? *at : Numeric<T>::narrow(0);
        at += stride * args.column_in;
      }
    };
    Sum sum = 0;
    for (std::int64_t c = 0; c < args.chunks; ++c) {
      fetch(start + c * chunk);
      Sum part[kEach];
#pragma unroll
      for (int k = 0; k < kEach; ++k) part[k] = magnitude(Numeric<T>::widen(held[k]));
      sum += tree_sum<kEach>(part);
    }
    // The threads behind each other, as a tree over halves.
    partial[threadIdx.x] = sum;
    for (int half = deep / 2; half > 0; half /= 2) {
      __syncthreads();
      if (y < half) partial[threadIdx.x] += partial[threadIdx.x + (half << args.across_log2)];
    }
    __syncthreads();
    Sum total = partial[x];
    if constexpr (kTeam == Team::kCluster) {
      cluster_barrier();  // all members run, and have read what the last tile exchanged
      for (int rank = y; rank < place.size; rank += deep) {
        cluster_store(&exchanged[(place.rank << args.across_log2) + x], rank, total);
      }
      cluster_barrier();
      total = 0;
      for (int rank = 0; rank < place.size; ++rank) total += exchanged[(rank << args.across_log2) + x];
    }
    RowScale<Sum> const scale = row_scale(total, static_cast<Sum>(args.columns));

    for (std::int64_t c = args.chunks - 1; c >= 0; --c) {
      if (c != args.chunks - 1) fetch(start + c * chunk);
      T* to = out + (start + c * chunk) * args.column_out;
      int const left = columns_left(start + c * chunk);
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        if (k * stride < left) *to = Numeric<T>::narrow(quotient(Numeric<T>::widen(held[k]), scale));
        to += stride * args.column_out;
      }
    }
    __syncthreads();  // partial is read before the next tile writes it
  }
}

}  // namespace l1norm
