// What the choice and the kernels must agree on, where it follows from more than one thing: how rows are cut where
// memory is as fast as usual, and where it is faster.
//
// Promise: plain C++17, for host and device. Each number was measured, on cards of either kind: ../PERFORMANCE.md.
#pragma once

#include <cstdint>

namespace l1norm {

// Memory, beside the multiprocessors that it serves: plan.h draws the line.
enum class Memory : int { kUsual = 0, kFast = 1 };

// The rows of a tile.
enum class Tiled {
  kTiny,   // shorter than a vector
  kShort,  // up to kTileMaxRow
  kLong,   // so long that few are in a tile: it is larger
};

constexpr int kTileMaxRow = 512;       // bytes: above, a row's two edges cost under a tenth of its vectors
constexpr int kTileScaleBytes = 8192;  // of shared memory for the scales of a tile's rows, at most

constexpr Tiled tiled_as(std::int64_t columns, int element_bytes) {
  if (columns * element_bytes > kTileMaxRow) return Tiled::kLong;
  return columns < 16 / element_bytes ? Tiled::kTiny : Tiled::kShort;
}

struct TileShape {
  int threads;
  int each;  // vectors that a thread holds

  constexpr int vectors() const { return threads * each; }
};

// Usual memory: longer rows take 16 KB, shorter ones are faster in 8 KB: 1 % where a tile has room for all its bytes, 25
// % where the scales of its many rows take up the room. Fast memory wants more under way: with four or three vectors a
// thread, and room for 1536 threads on an SM, 255 columns have 1.007 of a copy, not 0.97, 3 columns 1.015, not 0.96.
constexpr TileShape tile_shape(Tiled rows, Memory memory) {
  if (memory == Memory::kUsual) return {rows == Tiled::kLong ? 512 : 256, 2};
  if (rows == Tiled::kLong) return {384, 4};
  return {rows == Tiled::kTiny ? 128 : 256, 3};
}

// The two sweeps: a block adds up a chunk, and scales a share of one.
struct SweepShape {
  int sum_threads;
  int sum_each;    // vectors of a thread
  int sum_flying;  // of these at once
  int scale_threads;
  int scale_each;  // all at once

  constexpr int chunk() const { return sum_threads * sum_each; }      // vectors
  constexpr int share() const { return scale_threads * scale_each; }  // vectors
};

// Usual memory: chunks of 32 KB, as with 64 KB the last blocks of a sweep take 1 % longer. Fast memory: nothing goes
// round twice, and the blocks that scale are small: 0.67 of a copy, not 0.64.
constexpr SweepShape sweep_shape(Memory memory) {
  if (memory == Memory::kUsual) return {256, 8, 4, 256, 2};
  return {512, 8, 8, 64, 4};
}

// Few columns: threads of a block where a thread has room for so many columns of elements, or of vectors. Vectors want
// small blocks (1.02 of a copy, not 0.90, for 5 columns fp32), but small blocks of little work are too many (two columns
// of elements: 0.40, not 0.55).
constexpr int few_threads(bool vectors, int columns) {
  return vectors || columns > 64 ? 128 : 256;
}

// ceil(2^32 / number), from 2 on: the upper half of its product with a small integer is their quotient.
constexpr unsigned reciprocal(std::int64_t number) {
  return static_cast<unsigned>(((std::int64_t{1} << 32) + number - 1) / number);
}

// Rows that are begun while their team meets for the one before: the vectors of each thread in registers, those whose
// successors lie in shared memory and others. With 6 and 8 of the former 64 x 16777215 bf16 has 0.78 and 0.82 of a copy,
// with 12 0.85. With more than 14 doubles would spill.
constexpr int kAheadThreads = 512;
constexpr int kAheadEach = 14;
constexpr int kAheadMore = 4;

}  // namespace l1norm
