// The kernels of few columns and of slabs, launched on the host as launch.cu does on a card, for contiguous tensors of
// three dimensions.
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

template <typename T> void slabs(int each, int parts, T const* in, T* out, Shape at) {
  SlabArgs const args{in,   out,   at.outer, static_cast<int>(at.columns),      static_cast<int>(at.inner),
                      each, parts, reciprocal(at.inner * at.columns), reciprocal(at.inner)};
  std::barrier<> all(kSlabThreads);
  meeting = &all;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kSlabThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned block = 0; block * std::int64_t{each} < at.outer; ++block) {
        blockIdx = {block};
        threadIdx = {thread};
        slab_rows<T, Keep::kUsual>(args);
        all.arrive_and_wait();  // the next block has the same shared memory
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

extern "C" {
void few_float32(int most, float const* in, float* out, Shape at) { few_of(most, in, out, at); }
void few_float64(int most, double const* in, double* out, Shape at) { few_of(most, in, out, at); }
void slab_float32(int each, int parts, float const* in, float* out, Shape at) { slabs(each, parts, in, out, at); }
void slab_float64(int each, int parts, double const* in, double* out, Shape at) { slabs(each, parts, in, out, at); }
}
