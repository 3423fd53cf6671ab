// Rows from a few KB up to any length: a team of blocks holds one row in shared memory, adds it up, scales it, and fetches the next.
//
// A row is cut into one slice per block at 128-byte addresses of the input, not at columns / blocks: that is what lets odd rows be split.
// Each thread copies its own vectors of the slice into shared memory with asynchronous copies (no registers are held while they fly),
// reads them once for the sum and once for the quotient, and as soon as a vector has been stored asks for the same place of the next
// row: while the last stores drain, the next row is already on its way. A block stays for many rows.
//
// What a slice of a grid team has beyond the shared memory (in rows longer than the whole chip holds) is read from memory twice, the second
// time backwards, so that it begins with what the L2 cache still has.
#pragma once

#include "rows.cuh"
#include "team.cuh"

namespace l1norm {

constexpr int kTeamThreads = 256;  // at most; the choice launches fewer for shorter slices
constexpr int kTeamBlocks = 3;     // blocks an SM that the registers must leave room for

struct TeamArgs {
  Rows<kFewOuter> rows;
  int team;            // blocks that share a row
  std::int64_t slice;  // vectors of a block, a multiple of a line
  int held;            // of these in shared memory, at most
  GridMeeting meeting;
};

// One block's part of one row. Places are counted from the slice's start, which is a 128-byte line of the input.
template <typename T> struct Slice {
  T const* in;        // place 0, which may lie before the row: places [begin, end) hold vectors of the row
  T* out;
  int begin;          // 0 to 7
  std::int64_t end;
  RowView<T> row;
};

template <typename T> __device__ inline Slice<T> slice_of(TeamArgs const& args, std::int64_t row, int rank) {
  constexpr int kLineVectors = kLineBytes / kVectorBytes;
  Slice<T> to;
  to.row = view<T>(args.rows, row);
  int const lead =
      static_cast<int>(reinterpret_cast<std::uintptr_t>(to.row.in_vector(0)) / kVectorBytes) & (kLineVectors - 1);
  std::int64_t const origin = rank * args.slice - lead;  // the row's vector number at place 0
  to.in = to.row.in_vector(origin);
  to.out = to.row.out_vector(origin);
  to.begin = origin < 0 ? static_cast<int>(-origin) : 0;
  to.end = to.row.part.vectors - origin;
  if (to.end > args.slice) to.end = args.slice;
  if (to.end < to.begin) to.end = to.begin;  // a short row ends before this slice
  return to;
}

// The output has another phase than the input: whole vectors of the output are gathered from the slice in shared memory.
template <typename T>
__device__ inline void store_gathered(T const* held, T* out, int count, RowScale<SumOf<T>> scale) {
  Cut const to = cut(out, count);
  int const thread = static_cast<int>(threadIdx.x);
  for (int v = thread; v < static_cast<int>(to.vectors); v += static_cast<int>(blockDim.x)) {
    SumOf<T> y[kPerVector<T>];
    T const* const from = held + to.head + v * kPerVector<T>;
#pragma unroll
    for (int i = 0; i < kPerVector<T>; ++i) y[i] = quotient(Numeric<T>::widen(from[i]), scale);
    store16(out + to.head + v * kPerVector<T>, Numeric<T>::pack(y));
  }
  if (thread < to.head + to.tail) {
    int const i = thread < to.head ? thread : count - to.tail + (thread - to.head);
    out[i] = Numeric<T>::narrow(quotient(Numeric<T>::widen(held[i]), scale));
  }
}

// Loads in flight for a thread that reads past shared memory: three blocks of 256 threads x 4 x 16 bytes keep 48 KB under way on an SM.
constexpr int kFlying = 4;

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
      if (whole) {
        store16(slice.out + (i - k * threads) * kPerVector<T>, quotient16<T>(v[k], scale));
      } else {
        store_elements<T>(slice.out + (i - k * threads) * kPerVector<T>, v[k], scale);
      }
    }
  }
}

template <typename T, Team kTeam> __global__ void __launch_bounds__(kTeamThreads, kTeamBlocks)
    team_rows(TeamArgs const args) {
  using Sum = SumOf<T>;
  constexpr int kUnroll = 4;
  extern __shared__ uint4 held[];
  __shared__ TeamSlots<Sum> slots;
  int const thread = static_cast<int>(threadIdx.x);
  int const threads = static_cast<int>(blockDim.x);
  TeamPlace const place = team_place(args.team);
  std::int64_t row = place.team;
  if (row >= args.rows.count) return;  // the whole team leaves

  // The first block of a team has the row's edges, one to a thread.
  auto const has_edge = [&](Slice<T> const& slice) { return place.rank == 0 && thread < slice.row.edges(); };
  auto const load_edge = [&](Slice<T> const& slice) {
    return has_edge(slice) ? Numeric<T>::widen(slice.row.in[slice.row.edge(thread, args.rows.columns)]) : Sum(0);
  };
  auto const held_end = [&](Slice<T> const& slice) {
    return static_cast<int>(slice.end < args.held ? slice.end : args.held);
  };
  // A thread's first place: begin lies within the first line, so at most one step away.
  auto const first = [&](Slice<T> const& slice) { return thread < slice.begin ? thread + threads : thread; };

  Slice<T> now = slice_of<T>(args, row, place.rank);
  for (int i = first(now); i < held_end(now); i += threads) copy16_async(&held[i], now.in + i * kPerVector<T>);
  Sum edge = load_edge(now);
  if constexpr (kTeam == Team::kCluster) cluster_barrier();  // all members run before any writes to another's shared memory

  for (int turn = 0;; ++turn) {
    int const end = held_end(now);
    Sum sum = magnitude(edge);
    if constexpr (kTeam == Team::kGrid) sum += sum_unheld(now, args.held);
    copies_arrived();
#pragma unroll kUnroll
    for (int i = first(now); i < end; i += threads) sum += abs_sum<T>(held[i]);

    Sum const total = team_sum<kTeam>(sum, place, slots, args.meeting, turn);
    RowScale<Sum> const scale = row_scale(total, static_cast<Sum>(args.rows.columns));

    bool const more = row + place.teams < args.rows.count;
    Slice<T> next = now;
    next.end = next.begin;
    if (more) next = slice_of<T>(args, row + place.teams, place.rank);
    int const next_end = held_end(next);

    if (now.row.same_phase()) {
      int i = thread;
      // What both rows have, four vectors at a time, then what is left of either.
      if (i >= now.begin && i >= next.begin) {
        int const both = end < next_end ? end : next_end;
        for (; i + (kUnroll - 1) * threads < both; i += kUnroll * threads) {
          uint4 v[kUnroll];
#pragma unroll
          for (int k = 0; k < kUnroll; ++k) v[k] = held[i + k * threads];
#pragma unroll
          for (int k = 0; k < kUnroll; ++k) store16(now.out + (i + k * threads) * kPerVector<T>, quotient16<T>(v[k], scale));
#pragma unroll
          for (int k = 0; k < kUnroll; ++k) copy16_async(&held[i + k * threads], next.in + (i + k * threads) * kPerVector<T>);
        }
      }
      for (; i < end || i < next_end; i += threads) {
        if (i >= now.begin && i < end) store16(now.out + i * kPerVector<T>, quotient16<T>(held[i], scale));
        if (i >= next.begin && i < next_end) copy16_async(&held[i], next.in + i * kPerVector<T>);
      }
    } else {
      // Neighbours' vectors are read: the barrier inside team_sum let them arrive, this one keeps them until all have read.
      int const begin = now.begin;
      store_gathered<T>(reinterpret_cast<T const*>(held + begin), now.out + begin * kPerVector<T>, (end - begin) * kPerVector<T>, scale);
      __syncthreads();
      for (int i = first(next); i < next_end; i += threads) copy16_async(&held[i], next.in + i * kPerVector<T>);
    }
    if constexpr (kTeam == Team::kGrid) scale_unheld(now, args.held, scale);
    if (has_edge(now)) {
      now.row.out[now.row.edge(thread, args.rows.columns)] = Numeric<T>::narrow(quotient(edge, scale));
    }
    if (!more) return;
    edge = load_edge(next);
    now = next;
    row += place.teams;
  }
}

}  // namespace l1norm
