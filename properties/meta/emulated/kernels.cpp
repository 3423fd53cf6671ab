// The kernels of few columns, of slabs and of tiles of columns, launched on the host as launch.cu does on a card, for
// contiguous tensors of three dimensions.
#include "columns.cuh"
#include "few_columns.cuh"
#include "slabs.cuh"

#include <cstdlib>
#include <thread>
#include <vector>

thread_local Index threadIdx;
thread_local Index blockIdx;
std::barrier<>* meeting;

namespace {

using namespace l1norm;

struct Shape {
  std::int64_t outer, columns, inner;
};

// One thread after the other: none waits for another.
template <typename T, int kMost> void few(T const* in, T* out, Shape at) {
  FewArgs args{in, out, at.outer * at.inner, at.inner, at.inner, static_cast<int>(at.columns), {}};
  std::int64_t const row = at.columns * at.inner;
  args.outer = {2, {at.outer, at.inner}, {row, 1}, {row, 1}};
  constexpr unsigned kThreads = kFewThreads<false, kMost>;
  for (unsigned block = 0; block * std::int64_t{kThreads} < args.units; ++block) {
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      blockIdx = {block};
      threadIdx = {thread};
      few_columns<T, false, kMost, Keep::kUsual>(args);
    }
  }
}

template <typename T> void few_of(int most, T const* in, T* out, Shape at) {
  if (most == 4) return few<T, 4>(in, out, at);
  if (most == 16) return few<T, 16>(in, out, at);
  if (most == 64) return few<T, 64>(in, out, at);
  if (most == 128) return few<T, 128>(in, out, at);
  std::abort();
}

// The threads of a block at once, block after block: they have one shared memory.
template <typename Kernel> void in_blocks(std::int64_t blocks, unsigned threads, Kernel const& kernel) {
  std::barrier<> all(threads);
  meeting = &all;
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      threadIdx = {thread};
      for (unsigned block = 0; block < blocks; ++block) {
        blockIdx = {block};
        kernel();
        all.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : running) thread.join();
}

template <typename T> void slabs(int each, int parts, T const* in, T* out, Shape at) {
  SlabArgs const args{in,   out,   at.outer, static_cast<int>(at.columns),      static_cast<int>(at.inner),
                      each, parts, reciprocal(at.inner * at.columns), reciprocal(at.inner)};
  in_blocks((at.outer + each - 1) / each, kSlabThreads, [&] { slab_rows<T, Keep::kUsual>(args); });
}

// By blocks alone, as cards without clusters have it.
template <typename T>
void columns(int unit_bytes, int grain, int across_log2, int width, int held, T const* in, T* out, Shape at) {
  std::int64_t const tiles = (at.inner + width - 1) / width, row = at.columns * at.inner;
  ColumnArgs const args{in,    out,         at.columns, at.inner, at.inner, at.inner, tiles, {1, {at.outer}, {row}, {row}},
                        width, grain,       across_log2, 0,       held};
  in_blocks(at.outer * tiles, kColumnThreads, [&] {
    if (unit_bytes != kVectorBytes) return column_tiles<T, Units::kElements, Keep::kUsual>(args);
    if (grain > 1) return column_tiles<T, Units::kShifted, Keep::kUsual>(args);
    return column_tiles<T, Units::kAligned, Keep::kUsual>(args);
  });
}

}  // namespace

extern "C" {
void few_float32(int most, float const* in, float* out, Shape at) { few_of(most, in, out, at); }
void few_float64(int most, double const* in, double* out, Shape at) { few_of(most, in, out, at); }
void slab_float32(int each, int parts, float const* in, float* out, Shape at) { slabs(each, parts, in, out, at); }
void slab_float64(int each, int parts, double const* in, double* out, Shape at) { slabs(each, parts, in, out, at); }
void columns_float32(int unit, int grain, int across, int width, int held, float const* in, float* out, Shape at) {
  columns(unit, grain, across, width, held, in, out, at);
}
void columns_float64(int unit, int grain, int across, int width, int held, double const* in, double* out, Shape at) {
  columns(unit, grain, across, width, held, in, out, at);
}
}
