// Stands in the place of kernels/cuda/team.cuh where a host compiler builds the kernels: a block is alone.
#pragma once

#include "primitives.cuh"

namespace l1norm {

inline void cluster_arrive() {}
inline void cluster_wait() {}
inline void expect_mail(std::uint64_t*, int) {}
inline void before_sending() {}
inline void send_many(void*, int, std::uint64_t*, int) {}
inline void await(std::uint64_t*) {}

}  // namespace l1norm
