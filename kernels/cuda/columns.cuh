// Dim 1 is not the innermost: the elements of a row lie a stride apart, and neighbours in memory belong to different
// rows.
//
// A tile is a stretch of neighbouring rows. Threads lie along it, so a warp reads neighbouring elements; those behind
// each other, and the blocks of a cluster, share out the columns. A thread moves one unit at a time: 16 bytes, or an
// element where input and output are aligned differently. It keeps its units in shared memory, so a tile is read once;
// what does not fit is read twice, the second time backwards.
//
// Vectors lie at 16-byte addresses, and memory is written in sectors of 32 bytes. Where the columns of a tile do not begin
// with a sector, units are shifted against the rows, column by column, so that a sector is always the same neighbouring
// threads'. It belongs to the tile of its first element, which adds up the next tile's rows in it, too, and writes it
// whole. Only at the ends of a strip a unit reaches over rows that are nobody's here: the neighbouring column's, or those
// of another tensor. These are read where it is certain that they are there, and neither counted nor written.
#pragma once

#include "rows.cuh"
#include "team.cuh"
#include "unit.cuh"

namespace l1norm {

constexpr int kColumnThreadsLog2 = 8;
constexpr int kColumnThreads = 1 << kColumnThreadsLog2;

enum class Units {
  kElements,  // an element each
  kAligned,   // vectors; all columns of all tiles begin with a sector
  kShifted,   // vectors; columns begin anywhere, and those of one thread a multiple of a grain apart
};

// Blocks an SM that the registers must leave room for. (Aligned vectors of 16 bits with three: 148 us, not 126, for
// 256 x 128 x 56 x 56 bf16 on an H200, whose tiles of 32 KB leave room for more; sm_120 has no registers for four.)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
template <typename T> constexpr bool kFourBlocks = sizeof(T) > 2;
#else
template <typename T> constexpr bool kFourBlocks = true;
#endif
template <typename T, Units kUnits> constexpr int kColumnBlocks = kUnits == Units::kShifted || !kFourBlocks<T> ? 3 : 4;

struct ColumnArgs {
  void const* in;
  void* out;
  std::int64_t columns;
  std::int64_t column_in;
  std::int64_t column_out;
  std::int64_t strip;          // neighbouring rows in all
  std::int64_t tiles;          // of a strip
  OuterDims<kFewOuter> outer;  // the other dimensions
  int width;                   // rows of a tile
  int grain;                   // elements of a sector, of a vector where input and output need it; 1: not shifted
  int across_log2;             // units across a tile, a power of two
  int team_log2;               // blocks that share a tile's columns, a power of two
  int held;                    // units of a thread in shared memory, at most
};

// The sums of a tile's rows, from what each thread has found for those of its unit; as scales, in shared memory.
template <typename Sum> struct TileSums {
  Sum* sums;               // of each row, from each set of threads behind each other; at least two of each row
  Sum* members;            // of each row, from each member of the cluster, `stride` apart
  std::uint64_t* barrier;  // of a cluster's members, at which their sums arrive
  int width;               // rows
  int sets;                // a power of two
  int stride;              // rows, whole vectors of them

  __device__ RowScale<Sum>* scales() const { return reinterpret_cast<RowScale<Sum>*>(sums); }

  // Behind a barrier after all sums are written; in a cluster every member expects the others' sums. Row by row, in the
  // order of the sets and of the members.
  __device__ void add_up(int team, int rank, Sum columns) const {
    int const thread = static_cast<int>(threadIdx.x);
    for (int row = thread; row < width; row += kColumnThreads) {
      members[rank * stride + row] = sum_by_fours<Sum>(sets, [&](int set) { return sums[set * width + row]; });
    }
    if (team > 1) before_sending();
    __syncthreads();  // the scales take the place of the sums
    if (team > 1) {
      if (thread < team && thread != rank) {
        send_many(members + rank * stride, stride * static_cast<int>(sizeof(Sum)), barrier, thread);
      }
      await(barrier);
      cluster_arrive();  // waited for before a block leaves: its sums are read until all have them
    }
    for (int row = thread; row < width; row += kColumnThreads) {
      Sum const total = sum_by_fours<Sum>(team, [&](int member) { return members[member * stride + row]; });
      scales()[row] = row_scale(total, columns);
    }
    __syncthreads();
  }
};

template <typename T, Units kUnits, Keep kRead>
__global__ void __launch_bounds__(kColumnThreads, (kColumnBlocks<T, kUnits>)) column_tiles(ColumnArgs const args) {
  using Sum = SumOf<T>;
  using U = Unit<T, kUnits != Units::kElements>;
  constexpr int kRows = U::kRows;
  constexpr int kUnroll = 4;
  constexpr int kFours = 8;  // what is not kept is added up by fours, these by eights: one by one rounds too often
  let_next_begin();
  int const thread = static_cast<int>(threadIdx.x);
  int const across = 1 << args.across_log2;
  int const x = thread & (across - 1);
  int const y = thread >> args.across_log2;
  int const team = 1 << args.team_log2;
  int const rank = static_cast<int>(blockIdx.x) & (team - 1);
  std::int64_t const tile = blockIdx.x >> args.team_log2;

  // This thread's columns: first, first + stride, ...
  int const first = y * team + rank;
  int const stride_log2 = kColumnThreadsLog2 - args.across_log2 + args.team_log2;
  int const stride = 1 << stride_log2;
  std::int64_t const outer = divide(tile, args.tiles);
  std::int64_t const row = (tile - outer * args.tiles) * args.width;  // the tile's first, in its strip
  Offsets const at = offsets(args.outer, outer);
  T const* from = static_cast<T const*>(args.in) + at.in + row + first * args.column_in;
  T* to = static_cast<T*>(args.out) + at.out + row + first * args.column_out;
  // The tile's row that the unit's first element belongs to; its other elements belong to the next rows.
  int begin = x * kRows;
  int home = begin;  // the same of its grain
  if constexpr (kUnits == Units::kShifted) {
    int const beyond = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) / sizeof(T)) & (args.grain - 1);
    begin -= beyond;
    home = (home & -args.grain) - beyond;
  }
  from += begin;
  to += begin;
  // The rows that a tile adds up: its own, and those of the next tile in its last grain.
  int const most = args.width + args.grain - 1;
  int const seen = static_cast<int>(args.strip - row < most ? args.strip - row : most);
  auto const mine = [&](int i) {
    return kRows == 1 || static_cast<unsigned>(begin + i) < static_cast<unsigned>(seen);
  };
  bool const whole = kUnits != Units::kShifted || (begin >= 0 && begin + kRows <= seen);
  bool const writes = kUnits != Units::kShifted || (home < args.width && (home >= 0 || row == 0));

  std::int64_t count = 0;
  if (begin + kRows > 0 && begin < seen && first < args.columns) count = ((args.columns - 1 - first) >> stride_log2) + 1;
  int const kept = static_cast<int>(count < args.held ? count : args.held);
  std::int64_t const step_in = stride * args.column_in;
  std::int64_t const step_out = stride * args.column_out;

  // A unit across an end of its strip is read whole only between two columns behind each other: the tensor is there. Torn
  // are all of a thread's units, its first (at the strip's beginning) or its last, or none.
  bool all_torn = false;
  std::int64_t one_torn = -1;
  if constexpr (kUnits == Units::kShifted) {
    if (row + begin < 0) {
      all_torn = args.column_in != args.strip;
      if (first == 0) one_torn = 0;
    } else if (row + begin + kRows > args.strip) {
      all_torn = args.column_in != args.strip;
      if (first + (count - 1) * stride == args.columns - 1) one_torn = count - 1;
    }
  }
  auto const torn = [&](std::int64_t k) { return kUnits == Units::kShifted && (all_torn || k == one_torn); };
  auto const load_torn = [&](T const* place) {
    Sum values[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) values[i] = mine(i) ? Numeric<T>::widen(place[i]) : Sum(0);
    return U::pack(values);
  };
  auto const load = [&](std::int64_t k, T const* place) {
    return torn(k) ? load_torn(place) : U::template load<kRead>(place);
  };

  // Dynamic shared memory: the units, the barrier, the members' sums, and those of the sets. There are half as many sets
  // as groups of threads, from four on.
  extern __shared__ uint4 dynamic[];
  auto* const held = reinterpret_cast<typename U::Type*>(dynamic) + thread;
  int const side = kUnits == Units::kShifted || across > kWarp ? across : kWarp;  // threads of a group
  int const groups = kColumnThreads / side;
  TileSums<Sum> sums;
  sums.width = most;
  sums.sets = groups > 2 ? groups / 2 : groups;
  sums.stride =
      (most * static_cast<int>(sizeof(Sum)) + kVectorBytes - 1) / kVectorBytes * kVectorBytes / static_cast<int>(sizeof(Sum));
  sums.barrier =
      reinterpret_cast<std::uint64_t*>(reinterpret_cast<typename U::Type*>(dynamic) + args.held * kColumnThreads);
  sums.members = reinterpret_cast<Sum*>(reinterpret_cast<char*>(sums.barrier) + kVectorBytes);
  sums.sums = sums.members + team * sums.stride;
  if (team > 1) {
    expect_mail(sums.barrier, (team - 1) * sums.stride * static_cast<int>(sizeof(Sum)));
    cluster_arrive();
  }

  wait_for_previous();
  T const* place = from;
#pragma unroll kUnroll
  for (int k = 0; k < kept; ++k, place += step_in) {
    if (!torn(k)) U::template fetch<kRead>(held + k * kColumnThreads, place);
  }
  if (all_torn) {
    for (int k = 0; k < kept; ++k) held[k * kColumnThreads] = load_torn(from + k * step_in);
  } else if (one_torn >= 0 && one_torn < kept) {
    held[one_torn * kColumnThreads] = load_torn(from + one_torn * step_in);
  }
  Sum sum[kRows] = {};
  auto const add = [&](typename U::Type const& value, Sum* to) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) to[i] += magnitude(U::widen(value, i));
  };
  auto const move_into = [](Sum* total, Sum* part) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) total[i] += part[i], part[i] = 0;
  };
  Sum part[kRows] = {};
  std::int64_t more = kept;
  for (int fours = 1; more + kUnroll <= count; ++fours) {
    Sum four[kRows] = {};
#pragma unroll
    for (int i = 0; i < kUnroll; ++i, ++more, place += step_in) add(load(more, place), four);
    move_into(part, four);
    if (fours % kFours == 0) move_into(sum, part);
  }
  move_into(sum, part);
  for (; more < count; ++more, place += step_in) add(load(more, place), part);
  move_into(sum, part);
  copies_arrived();
  for (int k = 0; k < kept; k += 2 * kUnroll) {
#pragma unroll
    for (int i = 0; i < 2 * kUnroll; ++i) {
      if (k + i < kept) add(held[(k + i) * kColumnThreads], part);
    }
    move_into(sum, part);
  }

  // Threads behind each other in a warp, then the warps, then the blocks.
  if constexpr (kUnits != Units::kShifted) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      for (int step = across; step < kWarp; step *= 2) sum[i] += __shfl_xor_sync(kAllLanes, sum[i], step);
    }
  }
  int const group = thread / side;
  bool const adds = thread % side < across;
  if (adds && group < sums.sets) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (mine(i)) sums.sums[group * most + begin + i] = sum[i];
    }
  }
  __syncthreads();
  if (groups > sums.sets) {
    if (adds && group >= sums.sets) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (mine(i)) sums.sums[(group - sums.sets) * most + begin + i] += sum[i];
      }
    }
    __syncthreads();
  }
  if (team > 1) cluster_wait();  // all expect their sums
  sums.add_up(team, rank, static_cast<Sum>(args.columns));

  RowScale<Sum> scale[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) scale[i] = sums.scales()[mine(i) ? begin + i : 0];
  auto const store = [&](T* goal, typename U::Type const& value) {
    Sum quotients[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) quotients[i] = quotient(U::widen(value, i), scale[i]);
    if (whole) {
      U::store(goal, quotients);
    } else {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (mine(i)) goal[i] = Numeric<T>::narrow(quotients[i]);
      }
    }
  };
  if (writes) {
    T* goal = to + count * step_out;
    for (std::int64_t k = count - 1; k >= kept; --k) {
      place -= step_in;
      goal -= step_out;
      store(goal, load(k, place));
    }
    goal = to;
#pragma unroll kUnroll
    for (int k = 0; k < kept; ++k, goal += step_out) store(goal, held[k * kColumnThreads]);
  }
  if (team > 1) cluster_wait();
}

}  // namespace l1norm
