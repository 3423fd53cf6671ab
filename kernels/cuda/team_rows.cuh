// Rows from a few KB to what a cluster holds: a block, or a cluster of blocks, keeps one row in shared memory, adds it
// up and scales it. Few rows, and where memory is fast some of many, are kept in a block's registers, in part or
// altogether.
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

// Where a block keeps its slice. Registers are for rows whose output has the input's phase.
enum class Room {
  kShared,     // in shared memory
  kRegisters,  // in registers: a thread's own vectors go through no other memory, and wait for nobody's
  kBoth,       // in shared memory, and what is beyond in registers: a block that has an SM to itself
};

// The threads of a block, at most, the blocks of an SM that the registers must leave room for, and the vectors that a
// thread keeps there. Nothing spills, on any of the architectures.
template <typename T, Room kRoom> struct RoomFor {
  static constexpr int kThreads = kTeamThreads, kBlocks = kTeamBlocks, kKept = 0;
};
template <typename T> struct RoomFor<T, Room::kRegisters> {
  static constexpr int kThreads = sizeof(T) == 4 ? 640 : 448, kBlocks = 2, kKept = sizeof(T) == 4 ? 4 : 5;
};
template <typename T> struct RoomFor<T, Room::kBoth> {
  static constexpr int kThreads = sizeof(T) == 8 ? 1024 : 768, kBlocks = 1, kKept = sizeof(T) == 4 ? 6 : 0;
};

struct TeamArgs {
  Rows<kFewOuter> rows;
  int team_log2;  // blocks that share a row, a power of two
  int slice;      // vectors of a block, a multiple of a line
  int held;       // Room::kBoth: of these in shared memory
};

template <typename T, Team kTeam, Room kRoom, Keep kRead>
__global__ void __launch_bounds__((RoomFor<T, kRoom>::kThreads), (RoomFor<T, kRoom>::kBlocks))
    team_rows(TeamArgs const args) {
  using Sum = SumOf<T>;
  using For = RoomFor<T, kRoom>;
  static_assert(kTeam == Team::kBlock || kRoom == Room::kShared, "a cluster keeps its rows in shared memory");
  let_next_begin();
  extern __shared__ uint4 held[];
  __shared__ Mailbox<Sum> mail;
  int const thread = static_cast<int>(threadIdx.x);
  int const threads = static_cast<int>(blockDim.x);
  int const team_log2 = kTeam == Team::kCluster ? args.team_log2 : 0;
  int const size = 1 << team_log2;
  int const rank = static_cast<int>(blockIdx.x) & (size - 1);
  if constexpr (kTeam == Team::kCluster) {
    expect_mail(&mail.barrier, size * threads / kWarp * static_cast<int>(sizeof(Sum)));
    cluster_arrive();
  }
  Slice<T> const slice = slice_of<T>(args.rows, blockIdx.x >> team_log2, rank, args.slice);
  Places const places = held_places(slice, kRoom == Room::kBoth ? args.held : args.slice);
  Kept<T, (For::kKept > 0 ? For::kKept : 1), kRoom == Room::kBoth ? For::kThreads : 0> kept;
  int const kept_from = kRoom == Room::kBoth ? args.held : 0;
  // The first block of a team has the row's edges, one to a thread. They are asked for first, or the block would wait for
  // them when all else has come: 0.96 of a copy, not 1.00, for 65535 bf16 columns (H200).
  bool const has_edge = rank == 0 && thread < slice.row.edges();
  std::int64_t const edge_column = slice.row.edge(thread, args.rows.columns);
  wait_for_previous();
  T const asked = has_edge ? slice.row.in[edge_column] : Numeric<T>::narrow(Sum(0));
  if constexpr (kRoom != Room::kRegisters) fetch<kRead>(slice, places, held);
  if constexpr (For::kKept > 0) kept.template load<kRead>(slice, kept_from);

  Sum const edge = Numeric<T>::widen(asked);
  Sum sum = magnitude(edge);
  if constexpr (For::kKept > 0) sum += kept.sum();
  if constexpr (kRoom != Room::kRegisters) {
    copies_arrived();
    sum += abs_sum_held<T>(places, held);
  }
  if constexpr (kTeam == Team::kCluster) {
    cluster_wait();  // all mailboxes are open
    sum = cluster_sum(sum, mail, rank, size);
  } else {
    sum = block_sum(sum, mail.slots);
  }
  RowScale<Sum> const scale = row_scale(sum, static_cast<Sum>(args.rows.columns));

  if constexpr (For::kKept > 0) kept.template store<true>(slice, kept_from, scale);  // by the choice
  if constexpr (kRoom != Room::kRegisters) {
    if (slice.row.same_phase()) {
      for (int i = thread; i < places.end; i += kUnroll * threads) {
        uint4 v[kUnroll];
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
          if (places.has(i + k * threads)) v[k] = held[i + k * threads];
        }
        T* const to = slice.out + i * kPerVector<T>;
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
          store16_if(places.has(i + k * threads), to + k * threads * kPerVector<T>, quotient16<T>(v[k], scale));
        }
      }
    } else {
      // Neighbours' vectors are read: the barrier inside the sum let them arrive.
      store_gathered<T>(reinterpret_cast<T const*>(held + places.begin), slice.out + places.begin * kPerVector<T>,
                        (places.end - places.begin) * kPerVector<T>, scale);
    }
  }
  if (has_edge) slice.row.out[edge_column] = Numeric<T>::narrow(quotient(edge, scale));
}

}  // namespace l1norm
