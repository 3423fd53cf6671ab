// What a call is computed with (Plan), what a device allows (Limits), and what both choices, row_choice.h and
// column_choice.h, ask of a layout.
//
// Plain C++17 without CUDA or torch, like all of the choice: see choice.h.
#pragma once

#include <cstdint>

#include "geometry.h"
#include "layout.h"

namespace l1norm {

struct Limits {
  int sms;               // streaming multiprocessors
  int shared_per_sm;     // bytes
  int shared_per_block;  // bytes a block may ask for (opt-in)
  int max_cluster;       // blocks of a cluster, 1 where there are none
  int cooperative;       // may a launch ask for all its blocks to run at once?
  int memory;            // GB/s that its memory moves at most, 0 where it does not say
};

enum class Regime : int {
  kEmpty = 0,    // nothing to compute, nothing is launched
  kTile = 1,     // tile.cuh
  kGroup = 2,    // group.cuh
  kBlock = 3,    // team_rows.cuh, one block a row
  kCluster = 4,  // team_rows.cuh, a cluster a row
  kGrid = 5,     // grid_rows.cuh, blocks of the whole chip a row
  kColumns = 6,  // columns.cuh
  kStrided = 7,  // strided.cuh
  kSweeps = 8,   // sweeps.cuh
  kRegisters = 9,  // team_rows.cuh, one block a row, in its registers
  kAlone = 10,     // team_rows.cuh, one block a row, which has an SM to itself
  kAhead = 11,     // ahead_rows.cuh, blocks of the whole chip a row, with an SM to each
  kFew = 12,       // few_columns.cuh, a thread a row, or a vector of rows
  kSlab = 13,      // slabs.cuh, tiles of whole strips
};

struct Plan {
  Regime regime;
  // Of kFast, the L2 cache is told to keep what is read longer than what is written, and geometry.h has other tiles and
  // sweeps.
  Memory memory;
  int threads;     // of a block
  int team;        // blocks that share a row (a tile of columns); 1 elsewhere
  int lanes;       // kGroup, kTile, kStrided, kSlab: threads that share a row
  int each;        // kGroup: vectors a thread holds; kFew: columns it has room for
  int rows_each;   // kTile: rows of a tile; kSlab: slabs of a tile
  int unit;        // kColumns, kFew: the outer dimension whose stride is 1, -1 if there is none
  int unit_bytes;  // kColumns, kFew: what a thread moves at once
  int grain;       // kColumns: elements that tiles part between; 1 where their columns begin with a sector
  int across;      // kColumns: units across a tile
  int width;       // kColumns: rows of a tile
  // kBlock, kCluster, kGrid, kAlone, kAhead: vectors of a slice, kColumns: units of a thread, all in shared memory;
  // kSweeps: vectors of a chunk.
  int held;
  // kGrid: vectors of a slice, those beyond `held` in registers, or read twice; kAlone: vectors of a row, those beyond
  // `held` in registers; kAhead: vectors of a slice; kSweeps: chunks of a row.
  std::int64_t slice;
  std::int64_t teams;      // kGrid, kAhead: teams that run side by side; kSweeps: rows of a launch
  std::int64_t blocks;     // of the launch
  std::int64_t shared;     // bytes of dynamic shared memory
  std::int64_t workspace;  // bytes of scratch in global memory
};

namespace choice {

constexpr int kVector = 16;          // bytes
constexpr int kSector = 32;          // bytes, of a line
constexpr int kLine = 128;           // bytes
constexpr int kWarp = 32;            // threads
constexpr int kDriverShared = 1024;  // bytes the driver takes of each block's shared memory
constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;  // of a grid, in its first dimension
// GB/s for each SM, above which what a block does beside moving data is no longer hidden: 25 on an H100, 37 on an H200.
constexpr int kFastMemory = 30;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_div(a, b) * b;
}
constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
constexpr std::int64_t larger(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}
constexpr std::int64_t power_of_two(std::int64_t at_least) {
  std::int64_t p = 1;
  while (p < at_least) p *= 2;
  return p;
}
constexpr std::int64_t common(std::int64_t a, std::int64_t b) {
  return b == 0 ? a : common(b, a % b);
}

// Of a row's sum, and of each of the two numbers that scale a row.
constexpr std::int64_t sum_bytes(Kind kind) {
  return kind == Kind::kFloat64 ? 8 : 4;
}

inline std::int64_t row_bytes(Layout const& at) {
  return at.columns * element_bytes(at.kind);
}

inline Memory memory_of(Limits const& device) {
  return device.memory > kFastMemory * device.sms ? Memory::kFast : Memory::kUsual;
}

// Does every row of the input start at a multiple of `bytes`?
inline bool aligned(Layout const& at, int bytes) {
  if (reinterpret_cast<std::uintptr_t>(at.in) % bytes != 0) return false;
  for (int d = 0; d < at.outer.dims; ++d) {
    if (at.outer.in[d] * element_bytes(at.kind) % bytes != 0) return false;
  }
  return true;
}

// Do the rows of input and output lie beyond multiples of `bytes` by the same, whatever the steps along dimension `but`
// are? Then vectors of one may be stored as vectors of the other.
inline bool alike(Layout const& at, int bytes, int but = -1) {
  std::int64_t const size = element_bytes(at.kind);
  std::int64_t all = reinterpret_cast<std::uintptr_t>(at.in) - reinterpret_cast<std::uintptr_t>(at.out);
  all |= (at.column_in - at.column_out) * size;
  for (int d = 0; d < at.outer.dims; ++d) {
    if (d != but) all |= (at.outer.in[d] - at.outer.out[d]) * size;
  }
  return all % bytes == 0;
}

// Bytes of dynamic shared memory that leave room for `blocks` blocks of a kernel on an SM.
inline std::int64_t shared_for(Limits const& device, int blocks, int fixed) {
  std::int64_t const fair = device.shared_per_sm / blocks - kDriverShared - fixed;
  std::int64_t const most = device.shared_per_block - fixed;
  return smaller(fair, most) / kLine * kLine;
}

inline std::int64_t all_shared(Limits const& device) {
  return static_cast<std::int64_t>(device.sms) * device.shared_per_sm;
}

}  // namespace choice
}  // namespace l1norm
