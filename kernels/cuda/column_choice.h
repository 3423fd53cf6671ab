// The choice for rows whose elements lie a stride apart: tiles of neighbouring rows, or one row at a time where rows are
// no neighbours.
#pragma once

#include <initializer_list>

#include "plan.h"

namespace l1norm {
namespace choice {

constexpr int kColumnThreads = 256;
constexpr int kColumnTeam = 8;  // blocks that share the columns of a tile, at most
constexpr int kStridedThreads = 256;
constexpr int kSlabThreads = 256;
constexpr int kSlabTile = 24 << 10;  // bytes: 12 KB have 0.68 of a copy, not 0.79, for 100 x 15 bf16
constexpr int kSlabMost = 48 << 10;  // bytes of a slab: under 2^15 elements, and several blocks an SM
constexpr int kSlabRows = 1024;      // of a tile: the scales take 8 KB, or 16
constexpr int kSlabLanes = 32;

// The outer dimension along which rows are neighbours in both tensors, or -1.
inline int neighbours(Layout const& at) {
  int found = -1;
  for (int d = 0; d < at.outer.dims; ++d) {
    if (at.outer.in[d] == 1 && at.outer.out[d] == 1) found = d;
  }
  return found;
}

// Are the beginnings and ends of `unit`'s strips multiples of `bytes`, in both tensors?
inline bool strips_aligned(Layout const& at, int unit, int bytes) {
  std::int64_t const size = element_bytes(at.kind);
  std::int64_t all = reinterpret_cast<std::uintptr_t>(at.in) | reinterpret_cast<std::uintptr_t>(at.out);
  all |= at.column_in * size | at.column_out * size | at.outer.size[unit] * size;
  for (int d = 0; d < at.outer.dims; ++d) {
    if (d != unit) all |= at.outer.in[d] * size | at.outer.out[d] * size;
  }
  return all % bytes == 0;
}

inline Plan columns(Layout const& at, Limits const& device, int unit) {
  int const size = element_bytes(at.kind);
  std::int64_t const strip = at.outer.size[unit];
  Plan plan{};
  plan.regime = Regime::kColumns;
  plan.threads = kColumnThreads;
  plan.unit = unit;
  // Strips shorter than a line share sectors whatever is done: 0.98 of a copy, not 0.32, for 2796 x 3000 x 8 bf16.
  bool const whole = strips_aligned(at, unit, strip * size < kLine ? kVector : kSector);
  bool const shifted = !whole && alike(at, kVector, unit);
  plan.unit_bytes = whole || shifted ? kVector : size;
  std::int64_t const rows = plan.unit_bytes / size;  // of a unit
  std::int64_t const sector = alike(at, kSector, unit) ? kSector / size : rows;
  std::int64_t const sum = sum_bytes(at.kind);
  std::int64_t const unit_row = std::int64_t{kColumnThreads} * plan.unit_bytes;  // one unit of every thread
  // Four columns a thread where there are as many, and a line across where the strip is that wide. The columns of a
  // thread are a multiple of a vector apart if the threads behind each other are.
  std::int64_t behind = 1;
  while (behind * 8 <= smaller(at.columns, kColumnThreads * 4)) behind *= 2;
  std::int64_t const reach = shifted ? strip + sector - 1 : strip;
  std::int64_t const line = smaller(kLine / plan.unit_bytes, power_of_two(ceil_div(reach, rows)));
  std::int64_t const widest = shifted ? kColumnThreads / rows : kColumnThreads;
  std::int64_t const narrowest = smaller(widest, larger(kColumnThreads / behind, line));
  // Three blocks an SM, so that one still loads while others add up or store; one where that lets a cluster hold the
  // columns. (Five smaller ones were 5 to 10 % slower, as were clusters of 16.)
  bool fits = false;
  std::int64_t cost = 0;
  auto const attempt = [&](std::int64_t across, int blocks) {
    std::int64_t const groups = kColumnThreads / (shifted ? across : larger(across, kWarp));
    std::int64_t const sets = groups > 2 ? groups / 2 : 2;
    std::int64_t const largest = smaller(device.max_cluster, kColumnTeam);
    std::int64_t team_log2 = 0;
    std::int64_t team, tiles, others;  // blocks of a tile; tiles of a strip, and of all
    std::int64_t need, beside, room;   // units of a thread; bytes for a barrier and the sums; units that find room
    for (;; ++team_log2) {
      team = std::int64_t{1} << team_log2;
      std::int64_t const apart = kColumnThreads / across * team;  // a thread's columns
      // A tile may begin anywhere in its first grain, and reaches over the next tile's part of its last.
      std::int64_t const grain = !shifted ? 1 : apart * at.column_in % sector == 0 ? sector : rows;
      bool const one = strip + grain - 1 <= across * rows;
      std::int64_t const most = one ? strip : across * rows - 2 * (grain - 1);
      tiles = ceil_div(strip, most);
      plan.grain = static_cast<int>(grain);
      plan.width = static_cast<int>(shifted ? ceil_div(strip, tiles) : across * rows);
      others = tiles * (at.rows / strip);
      std::int64_t const seen = plan.width + grain - 1;
      need = ceil_div(at.columns, apart);
      beside = kVector + team * round_up(seen * sum, kVector) + sets * seen * sum;
      room = larger(1, shared_for(device, blocks, static_cast<int>(beside)) / unit_row);
      if (team * 2 > largest || (need <= room && (need == 1 || others * team >= device.sms))) break;
    }
    plan.across = static_cast<int>(across);
    plan.team = static_cast<int>(team);
    plan.held = static_cast<int>(smaller(need, room));
    plan.shared = plan.held * unit_row + beside;
    plan.blocks = others * team;
    fits = need <= room;
    // Where tiles share sectors, wider ones do so more rarely, but may reach further beyond the strip. A team of twice as
    // many blocks costs a tenth: 0.72 of a copy, not 0.76, for 64 x 1000 x 1155 bf16 with eight blocks.
    cost = tiles * (across * plan.unit_bytes + (whole ? 0 : kSector)) * (10 + team_log2);
  };
  for (int blocks : {3, 1}) {
    Plan best{};
    std::int64_t least = 0;
    for (std::int64_t across = narrowest; across <= widest; across *= 2) {
      attempt(across, blocks);
      if (!fits || (least != 0 && cost >= least)) continue;
      best = plan;
      least = cost;
    }
    if (least != 0) return best;
  }
  attempt(narrowest, 3);  // what does not fit is read twice
  return plan;
}

// Does a thread keep all columns of its rows in registers? Up to 32 it does, and 64 of 16-bit types, which are slower in
// tiles. More columns fill tiles, and are faster there (0.92 of a copy, not 0.79, for 512 x 48 x 2049 fp32), unless strips
// are short (0.13, not 0.52, for 100000 x 64 x 9). With more than 64 a thread has no neighbours to speak of in strips of
// two or three (0.21, not 0.32, for 131072 x 128 x 2), and doubles do not fit.
inline bool few_columns(Layout const& at, int unit) {
  if (at.outer.dims > kFewOuter + 1) return false;
  bool const narrow_type = element_bytes(at.kind) == 2;
  std::int64_t const strip = unit < 0 ? 1 : at.outer.size[unit];
  if (at.columns <= (narrow_type ? 64 : 32)) return true;
  if (at.columns <= 64) return strip < 128;
  return at.columns <= 128 && element_bytes(at.kind) <= 4 && strip >= 4 && strip < (narrow_type ? 128 : 48);
}

inline Plan few(Layout const& at, int unit) {
  int const size = element_bytes(at.kind);
  Plan plan{};
  plan.regime = Regime::kFew;
  plan.team = 1;
  plan.unit = unit;
  // Strips of less than a line are read sector by sector: then elements are as good, and there are more threads.
  bool const vectors = at.columns <= 16 && unit >= 0 && at.outer.size[unit] * size >= kLine &&
                       strips_aligned(at, unit, kVector);
  plan.unit_bytes = vectors ? kVector : size;
  plan.each = at.columns <= 4 ? 4 : at.columns <= 16 ? 16 : at.columns <= 64 ? 64 : 128;
  plan.threads = few_threads(vectors, plan.each);
  plan.blocks = ceil_div(at.rows / (plan.unit_bytes / size), plan.threads);
  return plan;
}

// Are strips short, and all elements of one behind each other, as are the strips? What is read for one row is shared with
// others then, and tiles of columns or threads of their own ask for it again and again: 0.12 to 0.5 of a copy where tiles
// of whole slabs have 0.8 to 0.95.
inline bool slabs(Layout const& at, Limits const& device, int unit) {
  if (unit != 1 || at.outer.dims != 2 || at.outer.size[0] < device.sms) return false;
  int const size = element_bytes(at.kind);
  std::int64_t const strip = at.outer.size[1];
  std::int64_t const slab = strip * at.columns;
  bool const dense = at.column_in == strip && at.column_out == strip && at.outer.in[0] == slab && at.outer.out[0] == slab;
  if (!dense || slab * size > kSlabMost || strip > kSlabRows || !alike(at, kVector)) return false;
  // Strips of whole sectors are read as well without, if they are a line wide or have many columns (1.03, not 0.95, for
  // 700 x 8 fp32), as are vectors of few columns.
  bool const line = strip * size >= kLine;
  bool const vectors = strips_aligned(at, unit, kVector);
  if (line && vectors && at.columns <= 16) return false;
  if (strips_aligned(at, unit, kSector) && (line || at.columns >= 512)) return false;
  // With the strip grow the conflicts of threads that ask for the scales of a vector's rows, most with eight rows a
  // vector: 0.80, 0.71, 0.58 and 0.45 of a copy for 33 x 24, 36, 65 and 127 bf16.
  if (size == 2) return strip < (vectors || at.columns <= 128 ? 40 : 72);
  return !vectors || strip < 48;
}

inline Plan slab(Layout const& at, Limits const& device) {
  std::int64_t const size = element_bytes(at.kind), sum = sum_bytes(at.kind);
  std::int64_t const strip = at.outer.size[1];
  std::int64_t const elements = strip * at.columns;  // of a slab
  // No more slabs a tile than leave two tiles for each SM.
  std::int64_t each = smaller(kSlabTile / (elements * size), kSlabRows / strip);
  each = larger(1, smaller(each, at.outer.size[0] / (2 * device.sms)));
  std::int64_t const rows = each * strip;
  Plan plan{};
  plan.regime = Regime::kSlab;
  plan.threads = kSlabThreads;
  plan.team = 1;
  plan.unit = 1;
  plan.rows_each = static_cast<int>(each);
  plan.lanes = static_cast<int>(smaller(smaller(at.columns, kSlabLanes), ceil_div(kSlabThreads, rows)));
  plan.shared = (ceil_div(each * elements * size, kVector) + 2) * kVector + rows * (2 + plan.lanes) * sum;
  plan.blocks = ceil_div(at.outer.size[0], each);
  return plan;
}

inline Plan strided(Layout const& at) {
  Plan plan{};
  plan.regime = Regime::kStrided;
  plan.threads = kStridedThreads;
  plan.team = 1;
  plan.lanes = at.columns <= 1024 ? 32 : kStridedThreads;
  plan.blocks = smaller(ceil_div(at.rows, kStridedThreads / plan.lanes), kMostBlocks);  // its blocks take several rows
  return plan;
}

}  // namespace choice
}  // namespace l1norm
