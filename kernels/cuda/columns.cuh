// Dim 1 is not the innermost: the elements of a row lie a stride apart, and neighbours in memory belong to different
// rows.
//
// A tile is a stretch of neighbouring rows. Threads lie along it, so a warp reads neighbouring elements; those behind
// each other, and the blocks of a cluster, share out the columns. A thread moves one unit at a time: 16 bytes, or an
// element where input and output are aligned differently. It keeps its units in shared memory, so a tile is read once;
// what does not fit is read twice, the second time backwards.
//
// Vectors lie at 16-byte addresses. Where the columns of a tile begin anywhere, they are shifted against the rows,
// column by column: the first and the last unit of a column then hold elements of the neighbouring tile, or even of the
// neighbouring column, beside the tile's own. These are read, and neither counted nor written.
#pragma once

#include "rows.cuh"
#include "team.cuh"

namespace l1norm {

constexpr int kColumnThreads = 256;

enum class Units {
  kElements,  // an element each
  kAligned,   // vectors; all columns of all tiles begin at one
  kShifted,   // vectors; columns begin anywhere, and those of one thread a multiple of a vector apart
};

// Blocks an SM that the registers must leave room for.
template <typename T, Units kUnits> constexpr int kColumnBlocks = kUnits == Units::kShifted || sizeof(T) == 2 ? 3 : 4;

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
  int across_log2;             // units across a tile, a power of two
  int team_log2;               // blocks that share a tile's columns, a power of two
  int held;                    // units of a thread in shared memory, at most
};

// What a thread moves at once: a vector of neighbouring rows' elements, or one element.
template <typename T, bool kVector> struct Unit;

template <typename T> struct Unit<T, true> {
  using Type = uint4;
  static constexpr int kRows = kPerVector<T>;
  static __device__ SumOf<T> widen(uint4 const& unit, int i) { return Numeric<T>::widen(unit, i); }
  template <Keep kRead> static __device__ uint4 load(T const* from) { return load16<kRead>(from); }
  static __device__ uint4 pack(SumOf<T> const* y) { return Numeric<T>::pack(y); }
  static __device__ void store(T* to, SumOf<T> const* y) { store16(to, Numeric<T>::pack(y)); }
  template <Keep kRead> static __device__ void fetch(uint4* to, T const* from) { copy16_async<kRead>(to, from); }
};

template <typename T> struct Unit<T, false> {
  using Type = T;
  static constexpr int kRows = 1;
  static __device__ SumOf<T> widen(T unit, int) { return Numeric<T>::widen(unit); }
  template <Keep> static __device__ T load(T const* from) { return *from; }
  static __device__ T pack(SumOf<T> const* y) { return Numeric<T>::narrow(y[0]); }
  static __device__ void store(T* to, SumOf<T> const* y) { *to = Numeric<T>::narrow(y[0]); }
  template <Keep> static __device__ void fetch(T* to, T const* from) { copy_element_async(to, from); }
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
      Sum total = 0;
      for (int g = 0; g < sets; ++g) total += sums[g * width + row];
      members[rank * stride + row] = total;
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
      Sum total = 0;
      for (int member = 0; member < team; ++member) total += members[member * stride + row];
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
  let_next_begin();
  int const thread = static_cast<int>(threadIdx.x);
  int const across = 1 << args.across_log2;
  int const x = thread & (across - 1);
  int const y = thread >> args.across_log2;
  int const deep = kColumnThreads >> args.across_log2;  // threads behind each other
  int const team = 1 << args.team_log2;
  int const rank = static_cast<int>(blockIdx.x) & (team - 1);
  std::int64_t const tile = blockIdx.x >> args.team_log2;

  // This thread's columns: first, first + stride, ...
  int const first = y * team + rank;
  int const stride = deep * team;
  std::int64_t const outer = divide(tile, args.tiles);
  std::int64_t const row = (tile - outer * args.tiles) * args.width;  // the tile's first, in its strip
  Offsets const at = offsets(args.outer, outer);
  T const* from = static_cast<T const*>(args.in) + at.in + row + first * args.column_in;
  T* to = static_cast<T*>(args.out) + at.out + row + first * args.column_out;
  // The tile's row that the unit's first element belongs to; its other elements belong to the next rows.
  int begin = x * kRows;
  if constexpr (kUnits == Units::kShifted)
    begin -= static_cast<int>(reinterpret_cast<std::uintptr_t>(from) % kVectorBytes / sizeof(T));
  from += begin;
  to += begin;
  int const width = static_cast<int>(args.strip - row < args.width ? args.strip - row : args.width);
  auto const mine = [&](int i) {
    return kRows == 1 || static_cast<unsigned>(begin + i) < static_cast<unsigned>(width);
  };
  bool const whole = kUnits != Units::kShifted || (begin >= 0 && begin + kRows <= width);

  std::int64_t count = 0;
  if (begin < width && first < args.columns) count = divide(args.columns - 1 - first, stride) + 1;
  int const kept = static_cast<int>(count < args.held ? count : args.held);
  std::int64_t const step_in = stride * args.column_in;
  std::int64_t const step_out = stride * args.column_out;

  // A unit across the end of its strip is read whole only between two columns behind each other: the tensor is there.
  bool const across_end = kUnits == Units::kShifted && (row + begin < 0 || row + begin + kRows > args.strip);
  auto const torn = [&](std::int64_t k) {
    if (!across_end) return false;
    std::int64_t const column = first + k * stride;
    return args.column_in != args.strip || (begin < 0 ? column == 0 : column == args.columns - 1);
  };
  auto const load_torn = [&](T const* place) {
    Sum values[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) values[i] = mine(i) ? Numeric<T>::widen(place[i]) : Sum(0);
    return U::pack(values);
  };
  auto const load = [&](std::int64_t k) {
    return torn(k) ? load_torn(from + k * step_in) : U::template load<kRead>(from + k * step_in);
  };

  // Dynamic shared memory: the units, the barrier, the members' sums, and those of the sets. There are half as many sets
  // as groups of threads, from four on.
  extern __shared__ uint4 dynamic[];
  auto* const held = reinterpret_cast<typename U::Type*>(dynamic) + thread;
  int const side = kUnits == Units::kShifted || across > kWarp ? across : kWarp;  // threads of a group
  int const groups = kColumnThreads / side;
  TileSums<Sum> sums;
  sums.width = args.width;
  sums.sets = groups > 2 ? groups / 2 : groups;
  sums.stride = (args.width * static_cast<int>(sizeof(Sum)) + kVectorBytes - 1) / kVectorBytes * kVectorBytes /
                static_cast<int>(sizeof(Sum));
  sums.barrier =
      reinterpret_cast<std::uint64_t*>(reinterpret_cast<typename U::Type*>(dynamic) + args.held * kColumnThreads);
  sums.members = reinterpret_cast<Sum*>(reinterpret_cast<char*>(sums.barrier) + kVectorBytes);
  sums.sums = sums.members + team * sums.stride;
  if (team > 1) {
    expect_mail(sums.barrier, (team - 1) * sums.stride * static_cast<int>(sizeof(Sum)));
    cluster_arrive();
  }

  wait_for_previous();
#pragma unroll kUnroll
  for (int k = 0; k < kept; ++k) {
    if (!torn(k)) U::template fetch<kRead>(held + k * kColumnThreads, from + k * step_in);
  }
  if (across_end) {
    for (int k = 0; k < kept; ++k) {
      if (torn(k)) held[k * kColumnThreads] = load_torn(from + k * step_in);
    }
  }
  Sum sum[kRows] = {};
  auto const add = [&](typename U::Type const& value, Sum* part) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) part[i] += magnitude(U::widen(value, i));
  };
#pragma unroll kUnroll
  for (std::int64_t k = kept; k < count; ++k) add(load(k), sum);
  copies_arrived();
  for (int k = 0; k < kept; k += 2 * kUnroll) {
    Sum part[kRows] = {};
#pragma unroll
    for (int i = 0; i < 2 * kUnroll; ++i) {
      if (k + i < kept) add(held[(k + i) * kColumnThreads], part);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) sum[i] += part[i];
  }

  // Threads behind each other in a warp, then the warps, then the blocks.
  if constexpr (kUnits != Units::kShifted) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      for (int step = across; step < kWarp; step *= 2) sum[i] += __shfl_xor_sync(kAllLanes, sum[i], step);
    }
  }
  int const group = thread / side;
  bool const writes = thread % side < across;
  if (writes && group < sums.sets) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (mine(i)) sums.sums[group * args.width + begin + i] = sum[i];
    }
  }
  __syncthreads();
  if (groups > sums.sets) {
    if (writes && group >= sums.sets) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (mine(i)) sums.sums[(group - sums.sets) * args.width + begin + i] += sum[i];
      }
    }
    __syncthreads();
  }
  if (team > 1) cluster_wait();  // all expect their sums
  sums.add_up(team, rank, static_cast<Sum>(args.columns));

  RowScale<Sum> scale[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) scale[i] = sums.scales()[mine(i) ? begin + i : 0];
  auto const store = [&](T* place, typename U::Type const& value) {
    Sum quotients[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) quotients[i] = quotient(U::widen(value, i), scale[i]);
    if (whole) {
      U::store(place, quotients);
    } else {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (mine(i)) place[i] = Numeric<T>::narrow(quotients[i]);
      }
    }
  };
  for (std::int64_t k = count - 1; k >= kept; --k) store(to + k * step_out, load(k));
#pragma unroll kUnroll
  for (int k = 0; k < kept; ++k) store(to + k * step_out, held[k * kColumnThreads]);
  if (team > 1) cluster_wait();
}

}  // namespace l1norm
