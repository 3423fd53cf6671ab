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

constexpr int kMaxTeamWarps = 128;  // partial sums that meet in shared memory: 16 blocks of 8 warps
constexpr int kCounterStride =
    32;  // words between counters: a 128-byte line each, so that teams do not wait for each other's line

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

// The two halves of a barrier of the cluster: what was written before `cluster_arrive`, to this block's shared memory
// or another's, is seen after `cluster_wait` by all its blocks. Between the two there is time for other work.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Write `value` where `slot` lies in the shared memory of block `rank` of the cluster, which must be running.
template <typename Sum> __device__ inline void cluster_store(Sum* slot, int rank, Sum value) {
#if __CUDA_ARCH__ >= 900
  unsigned const here = static_cast<unsigned>(__cvta_generic_to_shared(slot));
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  if constexpr (sizeof(Sum) == 4) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
  } else {
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there), "d"(value) : "memory");
  }
#else
  (void)slot, (void)rank, (void)value;
#endif
}

// The sum over all threads of the cluster, in each of them: every warp sends its sum to all members. Once a kernel.
template <typename Sum> __device__ inline Sum cluster_sum(Sum value, Sum* slots, int rank, int size) {
  int const warps = static_cast<int>(blockDim.x) / kWarp;
  int const lane = static_cast<int>(threadIdx.x) % kWarp;
  Sum const mine = warp_sum(value);
  if (lane < size) cluster_store(&slots[rank * warps + static_cast<int>(threadIdx.x) / kWarp], lane, mine);
  cluster_arrive();
  cluster_wait();
  return sum_slots(slots, size * warps);
}

// ---- grid -----------------------------------------------------------------------------------------------------------

struct GridPlace {
  int size;            // blocks of one team
  int rank;            // this block's place in it
  std::int64_t team;   // which team
  std::int64_t teams;  // of how many
};

// A team's blocks are neighbours in the grid. (Teams dealt out in turn, block by block, were 10 % slower.)
__device__ inline GridPlace grid_place(int size) {
  unsigned const members = static_cast<unsigned>(size);
  return {size, static_cast<int>(blockIdx.x % members), blockIdx.x / members, gridDim.x / members};
}

// Where the teams of one call meet in global memory: counters, zeroed before, and two sets of partial sums for each
// team.
struct GridMeeting {
  unsigned* counters;
  void* partials;
};

// Called by one thread of each block: returns once `members` blocks have called it `turn + 1` times, and sees what they
// wrote before.
__device__ inline void grid_meet(unsigned* counter, int members, int turn) {
  unsigned const target = static_cast<unsigned>(members) * (static_cast<unsigned>(turn) + 1u);
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
  unsigned seen;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
  } while (seen < target);
}

// Two sets of everything, used in turn: a set is written again only after a meeting that every reader of its last use
// has reached.
template <typename Sum> struct GridSlots {
  Sum warps[2][kWarp];
  Sum blocks[2][kWarp];
};

// The sum over all threads of the team, in each of them.
template <typename Sum>
__device__ inline Sum grid_sum(Sum value, GridPlace const& place, GridSlots<Sum>& slots, GridMeeting const& meeting,
                               int turn) {
  int const set = turn & 1;
  Sum const block = block_sum(value, slots.warps[set]);
  Sum* const partials = static_cast<Sum*>(meeting.partials) + (place.team * 2 + set) * place.size;
  if (threadIdx.x == 0) {
    __stcg(&partials[place.rank], block);
    grid_meet(meeting.counters + place.team * kCounterStride, place.size, turn);
  }
  __syncthreads();
  Sum part = 0;
  for (int i = static_cast<int>(threadIdx.x); i < place.size; i += static_cast<int>(blockDim.x))
    part += __ldcg(&partials[i]);
  return block_sum(part, slots.blocks[set]);
}

}  // namespace l1norm
