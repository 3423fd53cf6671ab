// y = x / mean(|x|) over one dimension of a strided tensor, for one storage type.
//
// Promise: the bits of a row depend on its elements and on nothing else: not on the number of threads, not on strides,
// not on the machine. Every way through this file adds in one order:
//   lane     element j of a block belongs to lane j mod 64; a lane adds its (at most 8) elements from left to right;
//   block    512 elements: the 64 lanes as a tree (i with i + 32, + 16, ... + 1);
//   cascade  blocks two by two, then pairs two by two, and so on, the ragged end from right to left.
// An element passes at most 7 + 6 + ceil(log2(ceil(n / 512))) additions, below the ceil(n / 256) + 18 that 256 lanes and
// a tree need. Absent elements count as +0, which changes no sum of magnitudes. 128 blocks form a chunk, a full subtree
// of the cascade: chunks may be summed apart, and by any thread.
//
// The mean is kept in the type that the row is added in (fp32 for fp16 and bf16), and every element is divided by it:
// IEEE division has no special case, so subnormal means, means beyond 2^126, inf, NaN and rows of zeros come out as the
// formula says. On the machines measured it costs nothing beside the memory it waits for.
//
// Includes nothing of torch: parallel loops come in as a function. C++17, as which older torch compiles extensions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.h"

namespace {

constexpr int lanes = 64;
constexpr int block_size = 512;                      // elements: 8 a lane
constexpr int64_t chunk_size = 128 * block_size;     // elements: 256 KiB of fp32, what a core's L2 holds twice
constexpr int tile_rows = 64;                        // adjacent rows taken together where dim 1 is not innermost
constexpr int64_t grain = 32768;                     // elements below which a second thread costs more than it brings
constexpr int cascade_depth = 56;                    // 2^56 blocks are more than 64-bit offsets can address

// One dimension of the rows: how many, and how far apart in x and in y, in elements.
struct Axis {
  int64_t size;
  int64_t x;
  int64_t y;
};

struct Problem {
  const void* x;
  void* y;
  int64_t columns;
  int64_t x_stride;        // between neighbours of a row, in elements; may be 0 or anything else
  int64_t y_stride;
  std::vector<Axis> axes;  // the rows, outermost first; never empty
};

template <class Value>
class Cascade {
 public:
  KERNELPROOF_INLINE void push(Value value) {
    for (uint64_t full = count_++; full & 1; full >>= 1) value = level_[--top_] + value;
    level_[top_++] = value;
  }
  KERNELPROOF_INLINE Value finish() {
    Value value = level_[--top_];
    while (top_ > 0) value = level_[--top_] + value;
    return value;
  }

 private:
  uint64_t count_ = 0;
  int top_ = 0;
  Value level_[cascade_depth];
};

template <class Scalar>
KERNELPROOF_INLINE Scalar mean_of(Scalar sum, int64_t columns) {
  // In double, so that a count above 2^24 is exact and an fp32 mean is rounded once.
  return static_cast<Scalar>(static_cast<double>(sum) / static_cast<double>(columns));
}

KERNELPROOF_INLINE F32 mean_of(F32 sum, int64_t columns) {
  using Wide = double __attribute__((vector_size(128)));
  return __builtin_convertvector(__builtin_convertvector(sum, Wide) / static_cast<double>(columns), F32);
}

KERNELPROOF_INLINE F64 mean_of(F64 sum, int64_t columns) { return sum / static_cast<double>(columns); }

// ---- One row, its elements next to each other -----------------------------------------------------------------------

template <class Type>
KERNELPROOF_INLINE typename Type::Scalar block_sum(const typename Type::Element* x, int count) {
  constexpr int groups = lanes / Type::width;
  typename Type::Vector sum[groups] = {};
  int done = 0;
  for (; done + lanes <= count; done += lanes) {
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) sum[g] += magnitude(Type::load(x + done + g * Type::width));
  }
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g, done += Type::width) {
    if (done + Type::width <= count) {
      sum[g] += magnitude(Type::load(x + done));
    } else if (done < count) {
      sum[g] += magnitude(load_partial<Type>(x + done, count - done));
    }
  }
#pragma GCC unroll 4
  for (int half = groups / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int g = 0; g < half; ++g) sum[g] += sum[g + half];
  }
  return lane_sum(sum[0]);
}

template <class Type>
KERNELPROOF_INLINE void divide(const typename Type::Element* x, typename Type::Element* y, int64_t count,
                               typename Type::Scalar mean) {
  int64_t done = 0;
  for (; done + Type::width <= count; done += Type::width) Type::store(y + done, Type::load(x + done) / mean);
  if (const int rest = static_cast<int>(count - done)) {
    store_partial<Type>(y + done, load_partial<Type>(x + done, rest) / mean, rest);
  }
}

// One row of at most `vectors` vectors, kept in registers between its sum and its division.
template <class Type, int vectors>
KERNELPROOF_INLINE void short_row(const typename Type::Element* x, typename Type::Element* y, int count) {
  typename Type::Vector row[vectors], sum[vectors];
  const int last = (count - 1) / Type::width * Type::width;
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) {
    const int start = v * Type::width;
    row[v] = start < last ? Type::load(x + start) : start == last ? load_partial<Type>(x + start, count - start)
                                                                  : typename Type::Vector{};
    sum[v] = magnitude(row[v]);
  }
#pragma GCC unroll 4
  for (int half = vectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int v = 0; v < half; ++v) sum[v] += sum[v + half];
  }
  const auto mean = mean_of(lane_sum(sum[0]), count);
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) {
    const int start = v * Type::width;
    if (start < last) Type::store(y + start, row[v] / mean);
    if (start == last) store_partial<Type>(y + start, row[v] / mean, count - start);
  }
}

// ---- One row at any stride: through a buffer of one block -----------------------------------------------------------

template <class Element>
KERNELPROOF_INLINE const Element* gathered(const Element* x, int64_t stride, int count, Element* buffer) {
  if (stride == 1) return x;
  for (int i = 0; i < count; ++i) buffer[i] = x[i * stride];
  return buffer;
}

// Single rows: a unit of work is a row, its sum is one number.
template <class Type>
struct Rows {
  using Element = typename Type::Element;
  using Sum = typename Type::Scalar;

  // All of a unit at once, where that is quicker than a sum and a division; false: not done.
  static KERNELPROOF_INLINE bool whole(const Problem& p, const Element* x, Element* y) {
    if (p.columns > lanes || p.x_stride != 1 || p.y_stride != 1) return false;
    const int count = static_cast<int>(p.columns);
    count <= Type::width ? short_row<Type, 1>(x, y, count) : short_row<Type, lanes / Type::width>(x, y, count);
    return true;
  }

  static Sum sum(const Problem& p, const Element* x, int64_t /*unit*/, int64_t count) {
    if (count <= block_size && p.x_stride == 1) return block_sum<Type>(x, static_cast<int>(count));
    Element buffer[block_size];
    Cascade<Sum> cascade;
    for (int64_t done = 0; done < count; done += block_size) {
      const int part = static_cast<int>(std::min<int64_t>(block_size, count - done));
      cascade.push(block_sum<Type>(gathered(x + done * p.x_stride, p.x_stride, part, buffer), part));
    }
    return cascade.finish();
  }

  static Sum mean(Sum sum, int64_t columns) { return mean_of(sum, columns); }

  static void scale(const Problem& p, const Element* x, Element* y, int64_t /*unit*/, int64_t count, Sum mean) {
    if (p.x_stride == 1 && p.y_stride == 1) return divide<Type>(x, y, count, mean);
    Element from[block_size], to[block_size];
    for (int64_t done = 0; done < count; done += block_size) {
      const int part = static_cast<int>(std::min<int64_t>(block_size, count - done));
      const Element* source = gathered(x + done * p.x_stride, p.x_stride, part, from);
      Element* target = y + done * p.y_stride;
      if (p.y_stride == 1) {
        divide<Type>(source, target, part, mean);
      } else {
        divide<Type>(source, to, part, mean);
        for (int i = 0; i < part; ++i) target[i * p.y_stride] = to[i];
      }
    }
  }
};

// ---- Adjacent rows, where the neighbour in memory is the next row's element -----------------------------------------

// Tiles of rows: a unit of work is up to 64 rows, its sum one number a row. A vector holds one column of 16 rows, so the
// lanes of the sum's order lie in an array; the additions of each row are the same as above, and so are the bits.
template <class Type>
struct Tiles {
  using Element = typename Type::Element;
  using Vector = typename Type::Vector;
  static constexpr int groups = tile_rows / Type::width;

  struct Sum {
    Vector rows[groups];
    friend KERNELPROOF_INLINE Sum operator+(Sum a, const Sum& b) {
      for (int g = 0; g < groups; ++g) a.rows[g] += b.rows[g];
      return a;
    }
  };

  static KERNELPROOF_INLINE bool whole(const Problem&, const Element*, Element*) { return false; }

  // Calls f(group, count) for the vectors that `rows` rows fill; count < width only for the last.
  template <class F>
  static KERNELPROOF_INLINE void each_group(int rows, F f) {
    if (rows == tile_rows) {
      for (int g = 0; g < groups; ++g) f(g, Type::width);
    } else {
      for (int g = 0; g * Type::width < rows; ++g) f(g, std::min(Type::width, rows - g * Type::width));
    }
  }

  static KERNELPROOF_INLINE Vector load(const Element* p, int count) {
    return count == Type::width ? Type::load(p) : load_partial<Type>(p, count);
  }

  static int rows_of(const Problem& p, int64_t unit) {
    return static_cast<int>(std::min<int64_t>(tile_rows, p.axes.back().size - unit * tile_rows));
  }

  static Sum sum(const Problem& p, const Element* x, int64_t unit, int64_t count) {
    const int rows = rows_of(p, unit);
    Cascade<Sum> cascade;
    Sum lane[lanes];
    for (int64_t done = 0; done < count; done += block_size) {
      const int part = static_cast<int>(std::min<int64_t>(block_size, count - done));
      // Lanes from `part` on hold +0, which changes no sum: those above the next power of two need not exist.
      int used = 1;
      while (used < std::min(part, lanes)) used *= 2;
      for (int i = 0; i < used; ++i) lane[i] = Sum{};
      for (int i = 0; i < part; ++i) {
        const Element* column = x + (done + i) * p.x_stride;
        Sum& into = lane[i % lanes];
        each_group(rows, [&](int g, int filled) {
          into.rows[g] += magnitude(load(column + g * Type::width, filled));
        });
      }
      for (int half = used / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
      }
      cascade.push(lane[0]);
    }
    return cascade.finish();
  }

  static Sum mean(Sum sum, int64_t columns) {
    for (auto& vector : sum.rows) vector = mean_of(vector, columns);
    return sum;
  }

  static void scale(const Problem& p, const Element* x, Element* y, int64_t unit, int64_t count, const Sum& mean) {
    const int rows = rows_of(p, unit);
    for (int64_t i = 0; i < count; ++i) {
      const Element* from = x + i * p.x_stride;
      Element* to = y + i * p.y_stride;
      each_group(rows, [&](int g, int filled) {
        const Vector quotient = load(from + g * Type::width, filled) / mean.rows[g];
        if (filled == Type::width) {
          Type::store(to + g * Type::width, quotient);
        } else {
          store_partial<Type>(to + g * Type::width, quotient, filled);
        }
      });
    }
  }
};

// ---- Spreading the units over threads -------------------------------------------------------------------------------

// Calls f(unit, x, y) for the units in [begin, end). `step` rows of the innermost axis make one unit.
template <class Element, class F>
void each_unit(const Problem& p, int64_t step, int64_t begin, int64_t end, F f) {
  const Axis inner{(p.axes.back().size + step - 1) / step, p.axes.back().x * step, p.axes.back().y * step};
  while (begin < end) {
    int64_t outer = begin / inner.size;
    const int64_t first = begin % inner.size;
    const int64_t last = std::min(inner.size, first + (end - begin));
    auto* x = static_cast<const Element*>(p.x);
    auto* y = static_cast<Element*>(p.y);
    for (size_t axis = p.axes.size() - 1; axis-- > 0; outer /= p.axes[axis].size) {
      const int64_t index = outer % p.axes[axis].size;
      x += index * p.axes[axis].x;
      y += index * p.axes[axis].y;
    }
    for (int64_t unit = first; unit < last; ++unit) f(unit, x + unit * inner.x, y + unit * inner.y);
    begin += last - first;
  }
}

// Divides from the end of the unit to its start: what the sum read last is what the caches still hold.
template <class Work, class Element>
void scale_backwards(const Problem& p, const Element* x, Element* y, int64_t unit, int64_t first, int64_t last,
                     const typename Work::Sum& mean) {
  for (int64_t chunk = last; chunk-- > first;) {
    const int64_t start = chunk * chunk_size;
    Work::scale(p, x + start * p.x_stride, y + start * p.y_stride, unit, std::min(chunk_size, p.columns - start), mean);
  }
}

template <class Work, class ParallelFor>
void run(const Problem& p, int64_t step, int threads, ParallelFor parallel_for) {
  using Element = typename Work::Element;
  using Sum = typename Work::Sum;
  int64_t units = (p.axes.back().size + step - 1) / step;
  for (size_t axis = 0; axis + 1 < p.axes.size(); ++axis) units *= p.axes[axis].size;
  const int64_t chunks = (p.columns + chunk_size - 1) / chunk_size;

  if (chunks == 1 || units >= 2 * threads) {
    const int64_t least = std::max<int64_t>(1, grain / (p.columns * step));
    parallel_for(0, units, least, [&](int64_t begin, int64_t end) {
      each_unit<Element>(p, step, begin, end, [&](int64_t unit, const Element* x, Element* y) {
        if (Work::whole(p, x, y)) return;
        const Sum mean = Work::mean(Work::sum(p, x, unit, p.columns), p.columns);
        scale_backwards<Work>(p, x, y, unit, 0, chunks, mean);
      });
    });
    return;
  }

  // Few long rows: threads share a row. Each chunk's sum is kept, then added in the order of the cascade.
  std::vector<Sum> sums(units * chunks);
  parallel_for(0, units * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      each_unit<Element>(p, step, task / chunks, task / chunks + 1, [&](int64_t unit, const Element* x, Element*) {
        const int64_t start = task % chunks * chunk_size;
        sums[task] = Work::sum(p, x + start * p.x_stride, unit, std::min(chunk_size, p.columns - start));
      });
    }
  });
  std::vector<Sum> means(units);
  for (int64_t unit = 0; unit < units; ++unit) {
    Cascade<Sum> cascade;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) cascade.push(sums[unit * chunks + chunk]);
    means[unit] = Work::mean(cascade.finish(), p.columns);
  }
  parallel_for(0, units * chunks, 1, [&](int64_t begin, int64_t end) {
    while (end > begin) {
      const int64_t index = (end - 1) / chunks;
      const int64_t start = std::max(begin, index * chunks);
      each_unit<Element>(p, step, index, index + 1, [&](int64_t unit, const Element* x, Element* y) {
        scale_backwards<Work>(p, x, y, unit, start - index * chunks, end - index * chunks, means[index]);
      });
      end = start;
    }
  });
}

template <class Type, class ParallelFor>
void l1_norm(const Problem& p, int threads, ParallelFor parallel_for) {
  const Axis& inner = p.axes.back();
  const bool row_is_dense = p.x_stride == 1 && p.y_stride == 1 && p.columns > 1;
  if (!row_is_dense && inner.x == 1 && inner.y == 1 && inner.size > 1) {
    run<Tiles<Type>>(p, tile_rows, threads, parallel_for);
  } else {
    run<Rows<Type>>(p, 1, threads, parallel_for);
  }
}

}  // namespace
