// Rows that no cluster holds, of any length: a team of blocks from the whole chip shares a row and meets in global
// memory.
//
// The launch is cooperative: all its blocks run at once, so a team may wait for its members. It stays for many rows: as
// soon as a vector has been stored, the block asks for the same place of the next row, so that loads go on while the
// last stores drain.
//
// A row longer than the chip's shared memory is read from memory twice in part: what a slice has beyond `held` is added
// up on the way, and read again backwards, so that it begins with what the L2 cache still has.
#pragma once

#include "slice.cuh"
#include "team.cuh"

namespace l1norm {

constexpr int kGridThreads = 256;
constexpr int kGridBlocks = 3;  // blocks an SM: the registers must leave room for all, as they run at once

// Loads in flight for a thread that reads past shared memory: three blocks of 256 threads x 4 x 16 bytes keep 48 KB
// under way on an SM. Eight made the registers spill, which cost 10 % in every row.
constexpr int kFlying = 4;

struct GridArgs {
  Rows<kFewOuter> rows;
  int team;            // blocks that share a row
  std::int64_t slice;  // vectors of a block, a multiple of a line
  int held;            // of these in shared memory, at most
  GridMeeting meeting;
};

// Sum of magnitudes of places [held, end).
template <typename T> __device__ inline SumOf<T> sum_unheld(Slice<T> const& slice, int held) {
  int const threads = static_cast<int>(blockDim.x);
  SumOf<T> sum = 0;
  for (std::int64_t i = held + static_cast<int>(threadIdx.x); i < slice.end; i += kFlying * threads) {
    uint4 v[kFlying];
#pragma unroll
    for (int k = 0; k < kFlying; ++k) {
      v[k] = make_uint4(0, 0, 0, 0);
      if (i + k * threads < slice.end) v[k] = load16(slice.in + (i + k * threads) * kPerVector<T>);
    }
    SumOf<T> part[kFlying];
#pragma unroll
    for (int k = 0; k < kFlying; ++k) part[k] = abs_sum<T>(v[k]);
    sum += tree_sum<kFlying>(part);
  }
  return sum;
}

// Read places [held, end) again, last first, and store their quotients.
template <typename T> __device__ inline void scale_unheld(Slice<T> const& slice, int held, RowScale<SumOf<T>> scale) {
  int const threads = static_cast<int>(blockDim.x);
  bool const whole = slice.row.same_phase();
  for (std::int64_t i = slice.end - 1 - static_cast<int>(threadIdx.x); i >= held; i -= kFlying * threads) {
    uint4 v[kFlying];
#pragma unroll
    for (int k = 0; k < kFlying; ++k) {
      if (i - k * threads >= held) v[k] = load16(slice.in + (i - k * threads) * kPerVector<T>);
    }
#pragma unroll
    for (int k = 0; k < kFlying; ++k) {
      if (i - k * threads < held) break;
      T* const to = slice.out + (i - k * threads) * kPerVector<T>;
      if (whole) {
        store16(to, quotient16<T>(v[k], scale));
      } else {
        store_elements<T>(to, v[k], scale);
      }
    }
  }
}

template <typename T> __global__ void __launch_bounds__(kGridThreads, kGridBlocks) grid_rows(GridArgs const args) {
  using Sum = SumOf<T>;
  extern __shared__ uint4 held[];
  __shared__ GridSlots<Sum> slots;
  int const thread = static_cast<int>(threadIdx.x);
  int const threads = static_cast<int>(blockDim.x);
  GridPlace const place = grid_place(args.team);

  // The first block of a team has the row's edges, one to a thread.
  auto const has_edge = [&](Slice<T> const& slice) { return place.rank == 0 && thread < slice.row.edges(); };
  auto const load_edge = [&](Slice<T> const& slice) {
    return has_edge(slice) ? Numeric<T>::widen(slice.row.in[slice.row.edge(thread, args.rows.columns)]) : Sum(0);
  };

  std::int64_t row = place.team;
  Slice<T> now = slice_of<T>(args.rows, row, place.rank, args.slice);
  Places mine = held_places(now, args.held);
  fetch(now, mine, held);
  Sum edge = load_edge(now);

  for (int turn = 0;; ++turn) {
    Sum sum = magnitude(edge) + sum_unheld(now, args.held);
    copies_arrived();
    sum += abs_sum_held<T>(mine, held);
    Sum const total = grid_sum(sum, place, slots, args.meeting, turn);
    RowScale<Sum> const scale = row_scale(total, static_cast<Sum>(args.rows.columns));

    bool const more = row + place.teams < args.rows.count;
    Slice<T> next = now;
    next.end = next.begin;
    if (more) next = slice_of<T>(args.rows, row + place.teams, place.rank, args.slice);
    Places const theirs = held_places(next, args.held);

    if (now.row.same_phase()) {
      // Four vectors at a time: read, store, and ask for the next row's at the same places.
      int const last = mine.end > theirs.end ? mine.end : theirs.end;
      for (int i = thread; i < last; i += kUnroll * threads) {
        uint4 v[kUnroll];
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
          if (mine.has(i + k * threads)) v[k] = held[i + k * threads];
        }
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
          if (mine.has(i + k * threads))
            store16(now.out + (i + k * threads) * kPerVector<T>, quotient16<T>(v[k], scale));
        }
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
          if (theirs.has(i + k * threads))
            copy16_async(&held[i + k * threads], next.in + (i + k * threads) * kPerVector<T>);
        }
      }
    } else {
      // Neighbours' vectors are read: the barrier inside the sum let them arrive, this one keeps them until all have
      // read.
      store_gathered<T>(reinterpret_cast<T const*>(held + mine.begin), now.out + mine.begin * kPerVector<T>,
                        (mine.end - mine.begin) * kPerVector<T>, scale);
      __syncthreads();
      fetch(next, theirs, held);
    }
    scale_unheld(now, args.held, scale);
    if (has_edge(now)) {
      now.row.out[now.row.edge(thread, args.rows.columns)] = Numeric<T>::narrow(quotient(edge, scale));
    }
    if (!more) return;
    edge = load_edge(next);
    now = next;
    mine = theirs;
    row += place.teams;
  }
}

}  // namespace l1norm
