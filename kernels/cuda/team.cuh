// A team of thread blocks that shares a row: who belongs to it, and how its members add up what each has found.
//
// Three kinds of team, one interface. A block alone meets at its barrier. A cluster (sm_90 and later) writes partial sums straight into the
// shared memory of its members and meets at the cluster's barrier. A team of the grid meets in global memory: the launch is cooperative, so
// all its blocks run at once, and its counters belong to one call alone.
//
// Promise: every member gets the same bits, whoever arrives first; partial sums are added in the order of their places.
#pragma once

#include "primitives.cuh"

namespace l1norm {

enum class Team { kBlock, kCluster, kGrid };

constexpr int kMaxTeamWarps = 128;  // partial sums that meet in shared memory: 16 blocks of 8 warps
constexpr int kCounterStride = 32;  // words between counters: a 128-byte line each, so that teams do not wait for each other's line

struct TeamPlace {
  int size;            // blocks of one team
  int rank;            // this block's place in it
  std::int64_t team;   // which team
  std::int64_t teams;  // of how many
};

__device__ inline TeamPlace team_place(int size) {
  int const rank = static_cast<int>(blockIdx.x) % size;
  return {size, rank, static_cast<int>(blockIdx.x) / size, static_cast<int>(gridDim.x) / size};
}

// ---- cluster -----------------------------------------------------------------------------------------------------------

// Everything written before, to this block's shared memory or another's, is seen after by all blocks of the cluster.
__device__ inline void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Write `value` where `slot` lies in the shared memory of block `rank` of the cluster.
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

// ---- grid --------------------------------------------------------------------------------------------------------------

__device__ inline unsigned load_acquire(unsigned const* from) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

__device__ inline void add_release(unsigned* to, unsigned value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

// Called by one thread of each block: returns once `members` blocks have called it `turn + 1` times.
__device__ inline void grid_meet(unsigned* counter, int members, int turn) {
  unsigned const target = static_cast<unsigned>(members) * (static_cast<unsigned>(turn) + 1u);
  add_release(counter, 1u);
  while (load_acquire(counter) < target) {
  }
}

// ---- sums --------------------------------------------------------------------------------------------------------------

// What the members need to add up. `slots` is shared memory, two sets used in turn, so that one barrier a row is enough: a block writes
// a set again only after a barrier that every reader of its last use has reached.
template <typename Sum> struct TeamSlots {
  Sum warps[2][kMaxTeamWarps];
  Sum blocks[2][kWarp];  // a grid team's second step
};

// A fixed tree over `count` slots, the same bits in every thread. Each warp does it for itself.
template <typename Sum> __device__ inline Sum sum_slots(Sum const* slots, int count) {
  Sum sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < count; i += kWarp) sum += slots[i];
  return warp_sum(sum);
}

// Where a grid team meets in global memory: zeroed counters and two sets of partial sums for each team.
struct GridMeeting {
  unsigned* counters;
  void* partials;
};

template <Team kTeam, typename Sum>
__device__ inline Sum team_sum(Sum value, TeamPlace const& place, TeamSlots<Sum>& slots, GridMeeting const& meeting, int turn) {
  int const set = turn & 1;
  int const warps = static_cast<int>(blockDim.x) / kWarp;
  int const warp = static_cast<int>(threadIdx.x) / kWarp;
  int const lane = static_cast<int>(threadIdx.x) % kWarp;
  Sum const mine = warp_sum(value);
  if constexpr (kTeam == Team::kCluster) {
    if (lane < place.size) cluster_store(&slots.warps[set][place.rank * warps + warp], lane, mine);
    cluster_barrier();
    return sum_slots(slots.warps[set], place.size * warps);
  }
  if (lane == 0) slots.warps[set][warp] = mine;
  __syncthreads();
  Sum const block = sum_slots(slots.warps[set], warps);
  if constexpr (kTeam == Team::kBlock) return block;
  Sum* const partials = static_cast<Sum*>(meeting.partials) + (place.team * 2 + set) * place.size;
  if (threadIdx.x == 0) {
    __stcg(&partials[place.rank], block);
    grid_meet(meeting.counters + place.team * kCounterStride, place.size, turn);
  }
  __syncthreads();
  Sum part = 0;
  for (int i = static_cast<int>(threadIdx.x); i < place.size; i += static_cast<int>(blockDim.x)) part += __ldcg(&partials[i]);
  part = warp_sum(part);
  if (lane == 0) slots.blocks[set][warp] = part;
  __syncthreads();
  return sum_slots(slots.blocks[set], warps);
}

}  // namespace l1norm
