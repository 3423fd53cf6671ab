// Rows of a fifth of the chip and more, where memory is fast: a team of blocks from the whole chip keeps a row, and has
// the beginning of the next one while it meets. In grid_rows, the memory waits for one part in six of such a row's time.
//
// A block has an SM to itself. The places of its slice lie, in this order, in three kinds of room:
//
//   ahead   kAheadEach vectors of each thread, in registers; the next row's are copied into shared memory meanwhile
//   more    kAheadMore of each thread, in registers
//   main    the rest, in shared memory, behind the room for the next row's beginning
//
// The next row's beginning is asked for when all of this row is on its way. One thread asks, for all of it at once, so
// that the letters of the meeting do not queue behind as many requests of their own block. All other places are asked for
// as soon as the same place of this row has been stored, as in grid_rows. The launch is cooperative; the teams take the
// rows in turns.
#pragma once

#include "geometry.h"
#include "slice.cuh"
#include "team.cuh"

namespace l1norm {

struct AheadArgs {
  Rows<1> rows;         // whose output has the input's phase
  int team;             // blocks that share a row
  int slice;            // vectors of a block, a multiple of a line
  GridMeeting meeting;  // without turns
};

template <typename T> __global__ void __launch_bounds__(kAheadThreads, 1) ahead_rows(AheadArgs const args) {
#if __CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200
  __trap();  // the choice has it for the data-centre chips of 9.0 and 10.0 only
#else
  using Sum = SumOf<T>;
  constexpr int kThreads = kAheadThreads;
  constexpr int kMorePlace = kAheadEach * kThreads;
  constexpr int kMainPlace = kMorePlace + kAheadMore * kThreads;
  constexpr int kAtOnce = 2;  // vectors that a thread takes from shared memory: more would spill
  constexpr Keep kRead = kKeepRead<Memory::kFast>;
  extern __shared__ uint4 begun[];  // the next row's places before kMorePlace
  __shared__ GridSlots<Sum> slots;  // with a barrier for the next row's beginning
  uint4* const main = begun + kMorePlace - kMainPlace;  // by place
  int const thread = static_cast<int>(threadIdx.x);
  GridPlace const place = grid_place(args.team);
  if (thread == 0) expect_nothing(&slots.barrier);
  __syncthreads();

  auto const slice_at = [&](unsigned row) { return slice_of<T>(args.rows, row, place.rank, args.slice); };
  // The last block of a team has the row's edges, one to a thread: its slice is the shortest.
  auto const has_edge = [&](RowView<T> const& row) { return place.rank == args.team - 1 && thread < row.edges(); };
  auto const load_edge = [&](RowView<T> const& row) {
    return has_edge(row) ? Numeric<T>::widen(row.in[row.edge(thread, args.rows.columns)]) : Sum(0);
  };
  auto const begin_row = [&](unsigned row) {
    Slice<T> const to = slice_at(row);
    int const end = to.end < kMorePlace ? to.end : kMorePlace;
    int const bytes = end > to.begin ? (end - to.begin) * kVectorBytes : 0;
    copy_bulk_async<kRead>(begun + to.begin, to.in + to.begin * kPerVector<T>, bytes, &slots.barrier);
  };

  unsigned const step = static_cast<unsigned>(place.teams);
  unsigned row = static_cast<unsigned>(place.team);
  uint4 ahead[kAheadEach];
  Kept<T, kAheadMore, kThreads> more;
  Sum edge;
  Places mine;  // of the row at hand
  {
    Slice<T> const first = slice_at(row);
    edge = load_edge(first.row);
    if (thread == 0) begin_row(row);
    more.template load<kRead>(first, kMorePlace);
    for (int i = kMainPlace + thread; i < first.end; i += kThreads) {
      copy16_async<kRead>(&main[i], first.in + i * kPerVector<T>);
    }
    mine = {first.begin, first.end};
  }

  for (unsigned turn = 1;; ++turn) {
    bool const another = row + step < args.rows.count;
    await(&slots.barrier, (turn - 1) & 1);
#pragma unroll
    for (int k = 0; k < kAheadEach; ++k) {
      ahead[k] = make_uint4(0, 0, 0, 0);
      if (mine.has(thread + k * kThreads)) ahead[k] = begun[thread + k * kThreads];
    }
    __syncthreads();  // all have taken theirs
    if (another && thread == 0) begin_row(row + step);
    Sum sum = magnitude(edge);
#pragma unroll
    for (int k = 0; k < kAheadEach; ++k) sum += abs_sum<T>(ahead[k]);
    sum += more.sum();
    copies_arrived();
    for (int i = kMainPlace + thread; i < mine.end; i += kAtOnce * kThreads) {
      Sum part[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        part[k] = i + k * kThreads < mine.end ? abs_sum<T>(main[i + k * kThreads]) : Sum(0);
      }
      sum += tree_sum<kAtOnce>(part);
    }
    Met<Sum> const met = grid_meet<Sum, false>(sum, 0, place, slots, args.meeting, turn);
    RowScale<Sum> const scale = row_scale(met.sum, static_cast<Sum>(args.rows.columns));

    Slice<T> const now = slice_at(static_cast<unsigned>(found_again(static_cast<int>(row))));
    Slice<T> const next = slice_at(another ? row + step : row);
    if (has_edge(now.row)) {
      now.row.out[now.row.edge(thread, args.rows.columns)] = Numeric<T>::narrow(quotient(edge, scale));
    }
    if (another) edge = load_edge(next.row);
    more.template store<true>(now, kMorePlace, scale);
    if (another) more.template load<kRead>(next, kMorePlace);
    // A few vectors at a time: read, store, and ask for the next row's at the same places.
    int const theirs = another ? next.end : 0;
    int const last = mine.end > theirs ? mine.end : theirs;
    for (int i = kMainPlace + thread; i < last; i += kAtOnce * kThreads) {
      uint4 v[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (i + k * kThreads < mine.end) v[k] = main[i + k * kThreads];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        int const at = i + k * kThreads;
        if (at < mine.end) store16(now.out + at * kPerVector<T>, quotient16<T>(v[k], scale));
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        int const at = i + k * kThreads;
        if (at < theirs) copy16_async<kRead>(&main[at], next.in + at * kPerVector<T>);
      }
    }
    // Last, for their successors are here, or on their way: 0.88 of a copy, not 0.80, for 64 x 8388608 (H200).
#pragma unroll
    for (int k = 0; k < kAheadEach; ++k) {
      int const at = thread + k * kThreads;
      if (mine.has(at)) store16(now.out + at * kPerVector<T>, quotient16<T>(found_again(ahead[k]), scale));
    }
    if (!another) return;
    row += step;
    mine = {next.begin, next.end};
  }
#endif
}

}  // namespace l1norm
