// Rows that no cluster holds but the chip does: a team of blocks from the whole chip keeps a row in shared memory and
// registers, and meets in global memory.
//
// The launch is cooperative: all its blocks run at once, so a team may wait for its members. It stays for many rows: as
// soon as a vector has been stored, the block asks for the same place of the next row, so that loads go on while the
// last stores drain. Teams get their rows as they come, because some parts of the chip are faster than others.
#pragma once

#include "slice.cuh"
#include "team.cuh"

namespace l1norm {

constexpr int kGridThreads = 768;  // an SM: one block of as many, or three of a third each

// Vectors that a thread keeps in registers, beyond those in shared memory: 12 to 36 KB an SM. One more would spill
// on one of the architectures.
template <typename T> constexpr int kKept = sizeof(T) == 4 ? 3 : 1;

struct GridArgs {
  Rows<kFewOuter> rows;
  int team;   // blocks that share a row
  int slice;  // vectors of a block, a multiple of a line
  int held;   // of these in shared memory, at most; the rest, a few for each thread, in registers
  GridMeeting meeting;
};

// The places of a slice beyond shared memory, each thread its own, in registers.
template <typename T> struct Kept {
  uint4 vector[kKept<T>];

  static __device__ int place(int k, int held) {
    return held + static_cast<int>(threadIdx.x) + k * static_cast<int>(blockDim.x);
  }
  __device__ void load(Slice<T> const& slice, int held) {
#pragma unroll
    for (int k = 0; k < kKept<T>; ++k) {
      vector[k] = make_uint4(0, 0, 0, 0);
      if (place(k, held) < slice.end) vector[k] = load16(slice.in + place(k, held) * kPerVector<T>);
    }
  }
  __device__ SumOf<T> sum() const {
    SumOf<T> sum = 0;
#pragma unroll
    for (int k = 0; k < kKept<T>; ++k) sum += abs_sum<T>(vector[k]);
    return sum;
  }
  __device__ void store(Slice<T> const& slice, int held, RowScale<SumOf<T>> scale) const {
    bool const whole = slice.row.same_phase();
#pragma unroll
    for (int k = 0; k < kKept<T>; ++k) {
      if (place(k, held) >= slice.end) continue;
      T* const to = slice.out + place(k, held) * kPerVector<T>;
      if (whole) {
        store16(to, quotient16<T>(vector[k], scale));
      } else {
        store_elements<T>(to, vector[k], scale);
      }
    }
  }
};

// Start copying these places into shared memory, each thread its own, in groups of kUnroll. Returns how many.
template <typename T> __device__ inline int fetch_chunks(Slice<T> const& slice, Places const& places, uint4* held) {
  int const threads = static_cast<int>(blockDim.x);
  int groups = 0;
  for (int i = static_cast<int>(threadIdx.x); i < places.end; i += kUnroll * threads) {
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      if (places.has(i + k * threads))
        copy16_async(&held[i + k * threads], slice.in + (i + k * threads) * kPerVector<T>);
    }
    group_copies();
    ++groups;
  }
  return groups;
}

template <typename T> __global__ void __launch_bounds__(kGridThreads, 1) grid_rows(GridArgs const args) {
  using Sum = SumOf<T>;
  extern __shared__ uint4 held[];
  __shared__ GridSlots<Sum> slots;
  int const thread = static_cast<int>(threadIdx.x);
  int const threads = static_cast<int>(blockDim.x);
  GridPlace const place = grid_place(args.team);

  auto const slice_at = [&](unsigned row) { return slice_of<T>(args.rows, row, place.rank, args.slice); };
  // The first block of a team has the row's edges, one to a thread.
  auto const has_edge = [&](RowView<T> const& row) { return place.rank == 0 && thread < row.edges(); };
  auto const load_edge = [&](RowView<T> const& row) {
    return has_edge(row) ? Numeric<T>::widen(row.in[row.edge(thread, args.rows.columns)]) : Sum(0);
  };

  unsigned row = static_cast<unsigned>(place.team);
  Places mine;
  int flying;  // groups of copies on their way
  Kept<T> kept;
  Sum edge;
  {
    Slice<T> const first = slice_at(row);
    mine = held_places(first, args.held);
    flying = fetch_chunks(first, mine, held);
    kept.load(first, args.held);
    edge = load_edge(first.row);
  }

  for (unsigned turn = 1;; ++turn) {
    unsigned claimed = 0;
    if (place.rank == 0 && thread == 0) claimed = static_cast<unsigned>(place.teams) + atomicAdd(args.meeting.rows, 1u);
    // Group by group, as the copies arrive.
    Sum sum = magnitude(edge);
    for (int i = thread; i < mine.end; i += kUnroll * threads) {
      groups_arrived(--flying);
      Sum part[kUnroll];
#pragma unroll
      for (int k = 0; k < kUnroll; ++k)
        part[k] = mine.has(i + k * threads) ? abs_sum<T>(held[i + k * threads]) : Sum(0);
      sum += tree_sum<kUnroll>(part);
    }
    sum += kept.sum();
    Met<Sum> const met = grid_meet(sum, claimed, place, slots, args.meeting, turn);
    RowScale<Sum> const scale = row_scale(met.sum, static_cast<Sum>(args.rows.columns));

    Slice<T> const now = slice_at(row);
    kept.store(now, args.held, scale);
    if (has_edge(now.row)) {
      now.row.out[now.row.edge(thread, args.rows.columns)] = Numeric<T>::narrow(quotient(edge, scale));
    }

    bool const more = met.next < args.rows.count;
    row = more ? met.next : row;
    Slice<T> const next = slice_at(row);
    Places theirs = held_places(next, args.held);
    if (!more) theirs.end = theirs.begin;
    if (now.row.same_phase()) {
      // Four vectors at a time: read, store, and ask for the next row's at the same places.
      int const last = mine.end > theirs.end ? mine.end : theirs.end;
      flying = 0;
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
        group_copies();
        ++flying;
      }
    } else {
      // Neighbours' vectors are read: the barrier inside the sum let them arrive, this one keeps them until all have
      // read.
      store_gathered<T>(reinterpret_cast<T const*>(held + mine.begin), now.out + mine.begin * kPerVector<T>,
                        (mine.end - mine.begin) * kPerVector<T>, scale);
      __syncthreads();
      flying = fetch_chunks(next, theirs, held);
    }
    if (!more) return;
    kept.load(next, args.held);
    edge = load_edge(next.row);
    mine = theirs;
  }
}

}  // namespace l1norm
