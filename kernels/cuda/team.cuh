// How the blocks that share a row add up what each has found: a block alone at its barrier, the members of a cluster
// (sm_90 and later) in each other's shared memory, a team from the whole grid in global memory.
//
// Promise: every member gets the same bits, whoever arrives first; partial sums are added in the order of their places,
// by trees of fixed shape. Nobody waits for a block that might not run: a cluster's blocks start together, and a grid
// team's launch is cooperative.
#pragma once

#include "primitives.cuh"

namespace l1norm {

enum class Team { kBlock, kCluster };

constexpr int kCounterStride = 32;  // words between counters: a 128-byte line each
constexpr int kMaxTeamWarps = 128;  // partial sums that meet in shared memory: 16 blocks of 8 warps

// ---- block ----------------------------------------------------------------------------------------------------------

// A tree over `count` slots, the same bits in every thread. Each warp does it for itself.
template <typename Sum> __device__ inline Sum sum_slots(Sum const* slots, int count) {
  Sum sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < count; i += kWarp) sum += slots[i];
  return warp_sum(sum);
}

// The sum over all threads of the block, in each of them. One barrier: `slots` may be written again only behind
// another.
template <typename Sum> __device__ inline Sum block_sum(Sum value, Sum* slots) {
  Sum const mine = warp_sum(value);
  if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = mine;
  __syncthreads();
  return sum_slots(slots, static_cast<int>(blockDim.x) / kWarp);
}

// ---- cluster --------------------------------------------------------------------------------------------------------

// The two halves of a barrier of the cluster. Between them there is time for other work. Nothing is published by it but
// that a thread came here, and opened mailboxes: waiting until all that was written is seen takes a microsecond.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// The address, in the shared memory of block `rank` of the cluster, of what lies at `here` in this block's.
__device__ inline unsigned cluster_address(void const* here, int rank) {
  unsigned there = 0;
#if __CUDA_ARCH__ >= 900
  unsigned const local = static_cast<unsigned>(__cvta_generic_to_shared(here));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(local), "r"(rank));
#else
  (void)here, (void)rank;
#endif
  return there;
}

// Where the warps of a cluster send their sums. The barrier counts the bytes that arrive, so a sum takes one way
// through the cluster, and nobody waits for the way back.
template <typename Sum> struct alignas(kLineBytes) Mailbox {
  Sum slots[kMaxTeamWarps];
  std::uint64_t barrier;
};

// By one thread, before the block's, or the cluster's, first barrier: nothing is expected at this one yet.
__device__ inline void expect_nothing(std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  unsigned const at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
  (void)barrier;
#endif
}

// By one thread, once for each time that is awaited: expect so many bytes. They may have arrived before.
__device__ inline void expect(std::uint64_t* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  unsigned const at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
#else
  (void)barrier, (void)bytes;
#endif
}

// By all threads, before the cluster's first barrier: expect so many bytes of mail, once.
__device__ inline void expect_mail(std::uint64_t* barrier, int bytes) {
  if (threadIdx.x == 0) expect_nothing(barrier);
  __syncwarp();
  if (threadIdx.x == 0) expect(barrier, bytes);
}

// By one thread: start copying `bytes`, a multiple of 16 or none, from global to shared memory, both at multiples of 16.
// They have arrived, for the whole block, behind `await`.
template <Keep kKeep>
__device__ inline void copy_bulk_async(void* to_shared, void const* from_global, int bytes, std::uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  unsigned const at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  unsigned const to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
  expect(barrier, bytes);
  if (bytes == 0) return;
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
          to),
      "l"(from_global), "r"(bytes), "r"(at), "l"(cache_policy<kKeep>())
      : "memory");
#else
  (void)to_shared, (void)from_global, (void)bytes, (void)barrier;
#endif
}

// Send `value` to where `slot` lies in block `rank`, which expects it at `barrier`.
template <typename Sum> __device__ inline void send(Sum* slot, std::uint64_t* barrier, int rank, Sum value) {
#if __CUDA_ARCH__ >= 900
  unsigned const to = cluster_address(slot, rank);
  unsigned const counter = cluster_address(barrier, rank);
  if constexpr (sizeof(Sum) == 4) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
                 "r"(__float_as_uint(value)), "r"(counter)
                 : "memory");
  } else {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to),
                 "l"(__double_as_longlong(value)), "r"(counter)
                 : "memory");
  }
#else
  (void)slot, (void)barrier, (void)rank, (void)value;
#endif
}

// Before the barrier of the block behind which one thread sends what this one has written: let it be seen there.
__device__ inline void before_sending() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Send `bytes` that lie at `slot`, both multiples of 16, to the same place in block `rank`, which expects them at
// `barrier`. They are read until they have arrived there. (Hundreds of single values take longer: all count at one
// barrier.)
__device__ inline void send_many(void* slot, int bytes, std::uint64_t* barrier, int rank) {
#if __CUDA_ARCH__ >= 900
  unsigned const from = static_cast<unsigned>(__cvta_generic_to_shared(slot));
  unsigned const to = cluster_address(slot, rank);
  unsigned const counter = cluster_address(barrier, rank);
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "r"(from), "r"(bytes), "r"(counter)
               : "memory");
#else
  (void)slot, (void)bytes, (void)barrier, (void)rank;
#endif
}

// Wait until everything expected has arrived at this block's `barrier`; where that happens again and again, until it has
// for the time of this parity: 0 for the first.
__device__ inline void await(std::uint64_t* barrier, unsigned parity = 0) {
#if __CUDA_ARCH__ >= 900
  unsigned const at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  unsigned arrived = 0;
  while (arrived == 0) {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(arrived)
        : "r"(at), "r"(parity)
        : "memory");
  }
#else
  (void)barrier, (void)parity;
#endif
}

// The sum over all threads of the cluster, in each of them: every warp sends its sum to all members, whose mailboxes
// are open. Once a kernel. No member leaves before it has got all its mail, so nobody writes to one that has left.
template <typename Sum> __device__ inline Sum cluster_sum(Sum value, Mailbox<Sum>& box, int rank, int size) {
  int const warps = static_cast<int>(blockDim.x) / kWarp;
  int const lane = static_cast<int>(threadIdx.x) % kWarp;
  Sum const mine = warp_sum(value);
  if (lane < size) send(&box.slots[rank * warps + static_cast<int>(threadIdx.x) / kWarp], &box.barrier, lane, mine);
  await(&box.barrier);
  return sum_slots(box.slots, size * warps);
}

// ---- grid -----------------------------------------------------------------------------------------------------------

struct GridPlace {
  int size;   // blocks of one team
  int rank;   // this block's place in it
  int team;   // which team
  int teams;  // of how many
};

// A team's blocks are neighbours in the grid. (Teams dealt out in turn, block by block, were 10 % slower.)
__device__ inline GridPlace grid_place(int size) {
  int const block = static_cast<int>(blockIdx.x);
  return {size, block % size, block / size, static_cast<int>(gridDim.x) / size};
}

// Where the teams of one call meet in global memory, all zero before: letters of a word and the turn it belongs to,
// written and read at once, so that whoever reads the turn has the word and no fence is needed. And the number of rows
// handed out.
struct GridMeeting {
  unsigned long long* letters;
  unsigned* arrived;  // a line for each team
  unsigned* rows;
  bool turns;  // do the teams take turns?
};

// Two sets of everything, used in turn: a set is written again only after a meeting that every reader of its last use
// has reached.
template <typename Sum> struct alignas(kLineBytes) GridSlots {
  Sum warps[2][kWarp];
  Sum members[2][kWarp];
  unsigned row[2];
  std::uint64_t barrier;  // for what else is awaited beside a meeting
};

template <typename Sum> constexpr int kWordsOf = static_cast<int>(sizeof(Sum) / sizeof(unsigned));

__device__ inline void post(unsigned long long* letter, unsigned word, unsigned turn) {
  unsigned long long const both = static_cast<unsigned long long>(turn) << 32 | word;
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(letter), "l"(both) : "memory");
}

// Wait for this turn's letter.
__device__ inline unsigned receive(unsigned long long const* letter, unsigned turn) {
  unsigned long long both;
  do {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(letter) : "memory");
  } while (static_cast<unsigned>(both >> 32) != turn);
  return static_cast<unsigned>(both);
}

// Wait until `counter` has come to `target`.
__device__ inline void await_count(unsigned const* counter, unsigned target) {
  unsigned seen;
  do {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
  } while (seen < target);
}

// One more has posted its letter: wait until `target` have, about. This keeps all threads but one from asking for letters
// again and again, which delays all data that passes the same part of the L2 cache: 0.94 of a copy against 0.87 without.
__device__ inline void await_most(unsigned* arrived, unsigned target) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
  await_count(arrived, target);
}

// Teams that begin together meet together, row after row: the last vectors of the one ahead wait in the queues behind
// all of the others', so nobody gets away, and the memory is idle whenever all meet. Therefore few teams take turns: one
// moves on to its next row once a part of its neighbour's blocks (the next team's; the last team's is the first, a row
// later) have the row that they meet for. 0.91 of a copy, not 0.81, for two teams on an H100, 0.955, not 0.87, for four.
// More than eight are apart anyway, and wait for each other in vain; so do teams that have one row each.
constexpr int kTurnTeams = 8;
constexpr unsigned kGone = 1u << 30;  // counted for a team that has no more rows; nobody has as many arrivals

constexpr bool take_turns(std::int64_t teams, std::int64_t rows) {
  return teams > 1 && teams <= kTurnTeams && rows > teams;
}

// By one thread of each block, behind its post for row number `turn` of the team (0: before its first row, with which
// only the last team waits): wait until the team may move on.
__device__ inline void await_turn(GridPlace const& place, GridMeeting const& meeting, unsigned turn) {
  bool const last = place.team == place.teams - 1;
  if (!meeting.turns || (turn == 0 && !last)) return;
  unsigned const size = static_cast<unsigned>(place.size);
  // Two teams overlap as long as most blocks of one still wait for data; more would leave too few under way.
  unsigned const part = size / (place.teams == 2 ? 8 : 4);
  int const neighbour = last ? 0 : place.team + 1;
  await_count(meeting.arrived + neighbour * kCounterStride, (last ? turn : turn - 1) * size + part);
}

// By one thread of each block, when the team has no more rows: nobody is to wait for it.
__device__ inline void take_leave(GridPlace const& place, GridMeeting const& meeting) {
  if (meeting.turns && place.rank == 0) atomicAdd(meeting.arrived + place.team * kCounterStride, kGone);
}

template <typename Sum> struct Met {
  Sum sum;        // over all threads of the team
  unsigned next;  // the team's next row
};

// The team adds up `value` over its threads and hears from its first block, whose thread 0 knows it, of its next row.
// Turns count from 1. Every thread of a block waits for a letter or two, so a sum takes one way through memory.
// kTurns: and the team waits until it may move on, if it takes turns.
template <typename Sum, bool kTurns>
__device__ inline Met<Sum> grid_meet(Sum value, unsigned next, GridPlace const& place, GridSlots<Sum>& slots,
                                     GridMeeting const& meeting, unsigned turn) {
  constexpr int kWords = kWordsOf<Sum>;
  int const thread = static_cast<int>(threadIdx.x);
  int const threads = static_cast<int>(blockDim.x);
  unsigned const set = turn & 1;
  int const letters = place.size * kWords + 1;
  unsigned long long* const box = meeting.letters + (place.team * 2 + set) * letters;
  Sum const block = block_sum(value, slots.warps[set]);
  if (thread == 0) {
    if constexpr (kWords == 1) {
      post(box + place.rank, __float_as_uint(block), turn);
    } else {
      post(box + place.rank, static_cast<unsigned>(__double2loint(block)), turn);
      post(box + place.size + place.rank, static_cast<unsigned>(__double2hiint(block)), turn);
    }
    if (place.rank == 0) post(box + letters - 1, next, turn);
    // The letters tell for sure. The last few are waited for at their boxes, where they are seen one way through memory
    // earlier: 1.5 % of a row of the whole chip.
    unsigned const size = static_cast<unsigned>(place.size);
    await_most(meeting.arrived + place.team * kCounterStride, size * turn - size / 8);
  }
  if (kTurns && thread == kWarp) await_turn(grid_place(found_again(place.size)), meeting, turn);
  __syncthreads();
  if (thread == threads - 1) slots.row[set] = receive(box + letters - 1, turn);
  Sum part = 0;
  for (int i = thread; i < place.size; i += threads) {
    unsigned const word = receive(box + i, turn);
    if constexpr (kWords == 1) {
      part += __uint_as_float(word);
    } else {
      part += __hiloint2double(static_cast<int>(receive(box + place.size + i, turn)), static_cast<int>(word));
    }
  }
  Sum const sum = block_sum(part, slots.members[set]);
  return {sum, slots.row[set]};
}

// One more: how many there were before. Those who came before have written what they wrote before, for this thread and,
// behind a barrier, for its block.
__device__ inline unsigned count_up(unsigned* counter) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

}  // namespace l1norm
