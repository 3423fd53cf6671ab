// Which kernel computes a call, and with what geometry: a pure function of the tensor's layout and the device's limits.
//
// Promise: plain C++17 without CUDA or torch, no state, no clock, no environment. The device's limits are data, so that
// every branch can be tested without a GPU and forced on any card (a card with clusters plays one without). The same
// call on the same device always gets the same plan, and with it the same bits.
//
// What the limits of each regime rest on stands beside them; what was measured stands in ../PERFORMANCE.md.
#pragma once

#include "column_choice.h"
#include "row_choice.h"

namespace l1norm {
namespace choice {

inline Plan kernel(Layout const& at, Limits const& device) {
  if (at.rows == 0 || at.columns == 0) return Plan{};
  if (at.column_in == 1 && at.column_out == 1 && at.outer.dims <= kFewOuter) {
    if (row_bytes(at) > kShortMaxRow) return team(at, device);
    return tiled(at, device) ? tile(at, memory_of(device)) : group(at, device);
  }
  int const unit = neighbours(at);
  if (slabs(at, device, unit)) {
    Plan const plan = slab(at, device);
    if (plan.blocks <= kMostBlocks) return plan;
  }
  if (few_columns(at, unit)) {
    Plan const plan = few(at, unit);
    if (plan.blocks <= kMostBlocks) return plan;
  }
  // Strips narrower than a sector waste most of each access that a line of columns would use.
  if (unit >= 0 && at.outer.dims <= kFewOuter + 1 && at.outer.size[unit] >= 8) {
    Plan const plan = columns(at, device, unit);
    if (plan.blocks <= kMostBlocks) return plan;
  }
  return strided(at);
}

}  // namespace choice

inline Plan choose(Layout const& at, Limits const& device) {
  Plan plan = choice::kernel(at, device);
  plan.memory = choice::memory_of(device);
  return plan;
}

}  // namespace l1norm
