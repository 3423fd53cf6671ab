// Rows from a few KB to what a cluster holds: a block, or a cluster of blocks, keeps one row in shared memory, adds it
// up and scales it.
//
// Each thread copies its own vectors of the block's slice into shared memory with asynchronous copies (no registers are
// held while they fly) and reads them twice there, for the sum and for the quotient.
//
// A block takes one row and leaves: several fit on an SM, so one loads while another stores, and whichever is done
// first makes room for the next row. (Blocks that stayed for many rows, fetching the next while they stored the last,
// were 5 % slower.)
#pragma once

#include "slice.cuh"
#include "team.cuh"

namespace l1norm {

constexpr int kTeamThreads = 384;  // at most; the choice launches fewer for shorter slices
constexpr int kTeamBlocks = 3;     // blocks an SM that the registers must leave room for

struct TeamArgs {
  Rows<kFewOuter> rows;
  int team_log2;  // blocks that share a row, a power of two
  int slice;      // vectors of a block, a multiple of a line
};

template <typename T, Team kTeam>
__global__ void __launch_bounds__(kTeamThreads, kTeamBlocks) team_rows(TeamArgs const args) {
  using Sum = SumOf<T>;
  let_next_begin();
  extern __shared__ uint4 held[];
  __shared__ Mailbox<Sum> mail;
  int const thread = static_cast<int>(threadIdx.x);
  int const threads = static_cast<int>(blockDim.x);
  int const team_log2 = kTeam == Team::kCluster ? args.team_log2 : 0;
  int const size = 1 << team_log2;
  int const rank = static_cast<int>(blockIdx.x) & (size - 1);
  if constexpr (kTeam == Team::kCluster) {
    if (thread == 0) open_mailbox(mail, size * threads / kWarp);
    cluster_arrive();
  }
  Slice<T> const slice = slice_of<T>(args.rows, blockIdx.x >> team_log2, rank, args.slice);
  Places const places = held_places(slice, args.slice);
  wait_for_previous();
  fetch(slice, places, held);
  // The first block of a team has the row's edges, one to a thread.
  bool const has_edge = rank == 0 && thread < slice.row.edges();
  std::int64_t const edge_column = slice.row.edge(thread, args.rows.columns);
  Sum const edge = has_edge ? Numeric<T>::widen(slice.row.in[edge_column]) : Sum(0);

  copies_arrived();
  Sum sum = magnitude(edge) + abs_sum_held<T>(places, held);
  if constexpr (kTeam == Team::kCluster) {
    cluster_wait();  // all mailboxes are open
    sum = cluster_sum(sum, mail, rank, size);
  } else {
    sum = block_sum(sum, mail.slots);
  }
  RowScale<Sum> const scale = row_scale(sum, static_cast<Sum>(args.rows.columns));

  if (slice.row.same_phase()) {
    for (int i = thread; i < places.end; i += kUnroll * threads) {
      uint4 v[kUnroll];
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        if (places.has(i + k * threads)) v[k] = held[i + k * threads];
      }
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        if (places.has(i + k * threads))
          store16(slice.out + (i + k * threads) * kPerVector<T>, quotient16<T>(v[k], scale));
      }
    }
  } else {
    // Neighbours' vectors are read: the barrier inside the sum let them arrive.
    store_gathered<T>(reinterpret_cast<T const*>(held + places.begin), slice.out + places.begin * kPerVector<T>,
                      (places.end - places.begin) * kPerVector<T>, scale);
  }
  if (has_edge) slice.row.out[edge_column] = Numeric<T>::narrow(quotient(edge, scale));
}

}  // namespace l1norm
