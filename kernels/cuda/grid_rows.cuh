// Rows that no cluster holds: a team of blocks from the whole chip keeps a row in shared memory and registers, and
// meets in global memory.
//
// The launch is cooperative: all its blocks run at once, so a team may wait for its members. It stays for many rows: as
// soon as a vector has been stored, the block asks for the same place of the next row, so that loads go on while the
// last stores drain. Teams get their rows as they come, because some parts of the chip are faster than others.
//
// A row somewhat longer than its team holds is read twice in part: the rest of a slice is added up on the way, and read
// again backwards, so that it begins with what the L2 cache still has. The cache is told to keep the rest, and nothing
// else, as nothing else is read again: 0.81 of a copy, not 0.78, for rows of 24 MB by two teams (H100).
#pragma once

#include "slice.cuh"
#include "team.cuh"

namespace l1norm {

constexpr int kGridThreads = 256;
constexpr int kGridBlocks = 3;  // blocks an SM: the registers must leave room for all, as they run at once

// Vectors that a thread keeps in registers, beyond those in shared memory: 12 to 36 KB an SM. One more would spill on
// one of the architectures.
template <typename T> constexpr int kKept = sizeof(T) == 4 ? 3 : 1;

// Loads in flight for a thread that reads a rest: three blocks of 256 threads x 4 x 16 bytes keep 48 KB under way on an
// SM. Eight made the registers spill, which cost 10 % in every row; so would four of doubles on one architecture.
template <typename T> constexpr int kFlying = sizeof(T) == 8 ? 2 : 4;

struct GridArgs {
  Rows<kFewOuter> rows;
  int team;   // blocks that share a row
  int slice;  // vectors of a block, a multiple of a line
  int held;   // of these in shared memory, at most; the next few in registers
  GridMeeting meeting;
};

// The sum of magnitudes of places [from, end).
template <typename T> __device__ inline SumOf<T> sum_rest(Slice<T> const& slice, int from) {
  SumOf<T> sum = 0;
  for (int i = from + static_cast<int>(threadIdx.x); i < slice.end; i += kFlying<T> * kGridThreads) {
    uint4 v[kFlying<T>];
#pragma unroll
    for (int k = 0; k < kFlying<T>; ++k) {
      int const at = i + k * kGridThreads;
      v[k] = load16_if<Keep::kLong>(at < slice.end, slice.in + at * kPerVector<T>);
    }
    SumOf<T> part[kFlying<T>];
#pragma unroll
    for (int k = 0; k < kFlying<T>; ++k) part[k] = abs_sum<T>(v[k]);
    sum += tree_sum<kFlying<T>>(part);
  }
  return sum;
}

// Read places [from, end) again, last first, and store their quotients.
template <typename T> __device__ inline void scale_rest(Slice<T> const& slice, int from, RowScale<SumOf<T>> scale) {
  for (int i = slice.end - 1 - static_cast<int>(threadIdx.x); i >= from; i -= kFlying<T> * kGridThreads) {
    uint4 v[kFlying<T>];
#pragma unroll
    for (int k = 0; k < kFlying<T>; ++k) {
      int const at = i - k * kGridThreads;
      v[k] = load16_if<Keep::kShort>(at >= from, slice.in + at * kPerVector<T>);
    }
#pragma unroll
    for (int k = 0; k < kFlying<T>; ++k) {
      if (i - k * kGridThreads >= from) store_vector<T, Keep::kShort>(slice, i - k * kGridThreads, v[k], scale);
    }
  }
}

// kRest: a slice may be longer than shared memory and registers together. Then the registers serve its rest. Its teams
// take no turns: with what they read again, most would be slower (0.68 of a copy, not 0.72, for bf16 on an H200).
// kRead: how long the L2 cache is to keep the places that are read once.
template <typename T, bool kRest, Keep kRead>
__global__ void __launch_bounds__(kGridThreads, kGridBlocks) grid_rows(GridArgs const args) {
  using Sum = SumOf<T>;
  constexpr bool kTurns = !kRest;
  constexpr Keep kKeep = kRest ? Keep::kShort : Keep::kUsual;
  extern __shared__ uint4 held[];
  __shared__ GridSlots<Sum> slots;
  int const thread = static_cast<int>(threadIdx.x);
  GridPlace const place = grid_place(args.team);
  if (kTurns && args.meeting.turns) {
    if (thread == 0) await_turn(place, args.meeting, 0);
    __syncthreads();
  }

  auto const slice_at = [&](unsigned row) { return slice_of<T>(args.rows, row, place.rank, args.slice); };
  // The last block of a team has the row's edges, one to a thread: its slice is the shortest, and the first block hands
  // out rows.
  auto const has_edge = [&](RowView<T> const& row) { return place.rank == args.team - 1 && thread < row.edges(); };
  auto const load_edge = [&](RowView<T> const& row) {
    return has_edge(row) ? Numeric<T>::widen(row.in[row.edge(thread, args.rows.columns)]) : Sum(0);
  };

  unsigned row = static_cast<unsigned>(place.team);
  Places mine;
  Kept<T, kKept<T>, kGridThreads> kept;
  Sum edge;
  {
    Slice<T> const first = slice_at(row);
    mine = held_places(first, args.held);
    fetch<kRead>(first, mine, held);
    if constexpr (!kRest) kept.template load<kRead>(first, args.held);
    edge = load_edge(first.row);
  }

  for (unsigned turn = 1;; ++turn) {
    unsigned claimed = 0;
    if (place.rank == 0 && thread == 0) claimed = static_cast<unsigned>(place.teams) + atomicAdd(args.meeting.rows, 1u);
    Sum sum = magnitude(edge);
    if constexpr (kRest) {
      sum += sum_rest(slice_at(row), args.held);
    } else {
      sum += kept.sum();
    }
    copies_arrived();
    sum += abs_sum_held<T>(mine, held);
    Met<Sum> const met = grid_meet<Sum, kTurns>(sum, claimed, place, slots, args.meeting, turn);
    RowScale<Sum> const scale = row_scale(met.sum, static_cast<Sum>(args.rows.columns));

    Slice<T> const now = slice_at(row);
    if constexpr (kRest) {
      scale_rest(now, args.held, scale);
    } else {
      kept.store(now, args.held, scale);
    }
    if (has_edge(now.row)) {
      now.row.out[now.row.edge(thread, args.rows.columns)] = Numeric<T>::narrow(quotient(edge, scale));
    }

    bool const more = met.next < args.rows.count;
    if (kTurns && !more && thread == 0) take_leave(grid_place(found_again(args.team)), args.meeting);
    row = more ? met.next : row;
    Slice<T> const next = slice_at(row);
    Places theirs = held_places(next, args.held);
    if (!more) theirs.end = theirs.begin;
    if constexpr (!kRest) edge = load_edge(next.row);  // early, or all wait for it; beside a rest it would spill
    if (now.row.same_phase()) {
      // A few vectors at a time: read, store, and ask for the next row's at the same places.
      constexpr int kAtOnce = kRest ? 2 : sizeof(T) == 8 ? 3 : 4;  // more would spill
      int const last = mine.end > theirs.end ? mine.end : theirs.end;
      for (int i = thread; i < last; i += kAtOnce * kGridThreads) {
        uint4 v[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          if (mine.has(i + k * kGridThreads)) v[k] = held[i + k * kGridThreads];
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          int const at = i + k * kGridThreads;
          if (mine.has(at)) store16<kKeep>(now.out + at * kPerVector<T>, quotient16<T>(v[k], scale));
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          int const at = i + k * kGridThreads;
          if (theirs.has(at)) copy16_async<kRead>(&held[at], next.in + at * kPerVector<T>);
        }
      }
    } else {
      // Neighbours' vectors are read: the barrier inside the sum let them arrive, this one keeps them until all have
      // read.
      store_gathered<T>(reinterpret_cast<T const*>(held + mine.begin), now.out + mine.begin * kPerVector<T>,
                        (mine.end - mine.begin) * kPerVector<T>, scale);
      __syncthreads();
      fetch<kRead>(next, theirs, held);
    }
    if (!more) return;
    Slice<T> const same = slice_at(static_cast<unsigned>(found_again(static_cast<int>(row))));
    if constexpr (kRest) {
      edge = load_edge(same.row);
    } else {
      kept.template load<kRead>(same, args.held);
    }
    mine = theirs;
  }
}

}  // namespace l1norm
