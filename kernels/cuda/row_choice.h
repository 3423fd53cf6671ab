// The choice for rows whose elements lie behind each other: tiles and groups for short ones, a block or a cluster for
// long ones, the whole chip for the longest.
#pragma once

#include <initializer_list>

#include "plan.h"

namespace l1norm {
namespace choice {

constexpr int kShortMaxRow = 4096;   // bytes: a few rows of a tile; 32 lanes with 8 vectors each, one row a group
constexpr int kSmLanes = 2048;  // threads of an SM at once
constexpr int kTeamStatic = 1152;    // bytes of static shared memory of team_rows and grid_rows, at most: whole lines
constexpr int kGridThreads = 256;
// A row of more than so many times what the chip holds is left to the sweeps. Measured at 53 MB (0.68 of a copy against
// 0.60) and at 1 GB (0.64 against 0.66) on a chip that holds 36 MB; the two lines meet near 200 MB.
constexpr int kSweepFrom = 6;
constexpr int kSweepGroup = 256;    // chunks that are added up together
constexpr int kFastCluster = 4;
constexpr int kTeamThreads = 384;  // of a block that keeps a slice, at most
// So many where memory is fast and a row, or a slice of one, has so many vectors.
constexpr std::int64_t kWideRow = 1792, kWideSlice = 3072;
// Where memory is fast, what an SM has under way at once counts: with 60 to 150 KB it moves 0.96 to 0.99 of a copy, with
// the 200 KB of three long slices 0.94 to 0.96. So long rows are kept by two blocks an SM, or by one. Shorter rows are
// kept in registers, without the way through shared memory; few rows wherever they fit, on any card, for it is shorter
// (264 x 4095: 1.30 times the copy, not 1.01; 16 x 2048: 0.90, not 0.64 in a cluster).
constexpr int kManyRows = 16;                      // for each SM: with fewer long ones the chip waits for the last
constexpr std::int64_t kUnderWay = 58 << 10;       // bytes, at least: 48 KB lose 4 %
constexpr std::int64_t kUnderWayOfTwo = 72 << 10;  // by two blocks: 64 KB have 0.995 of a copy, three blocks' 96 KB 1.02
constexpr int kSmRegisters = 65536;             // of every architecture that has clusters, and of most without
constexpr std::int64_t kAloneFrom = 120 << 10;  // bytes: 16-bit types would lose 3 % at 112 KB
constexpr std::int64_t two_from(Kind kind) {
  return (element_bytes(kind) == 2 ? 52 : 34) << 10;  // bytes: 16-bit types would lose 4 % at 48 KB
}
// Teams that have the beginning of their next row, at most: rows of 33 MB by one team are at 0.88 of a copy, by the grid
// at 0.77, rows of 17 MB by two at 0.93, not 0.82, rows of 8 MB by four at 0.94, not 0.92. With more the grid is as fast.
constexpr int kAheadTeams = 5;
constexpr int kLargeChip = 16;  // blocks of a cluster, which only chips take that have the kernel's asynchronous copies

// Do the rows lie behind each other without gaps, in both tensors?
inline bool flat(Layout const& at) {
  return at.outer.dims == 0 || (at.outer.dims == 1 && at.outer.in[0] == at.columns && at.outer.out[0] == at.columns);
}

// The vectors of a row, at least one.
inline std::int64_t row_vectors(Layout const& at) {
  return larger(1, at.columns * element_bytes(at.kind) / kVector);
}

// Does every row begin and end with a vector?
inline bool whole_vectors(Layout const& at) {
  return aligned(at, kVector) && row_bytes(at) % kVector == 0;
}

// Vectors that a lane of a group holds: two loads in flight where the row is long enough to leave neighbours 128 bytes
// each.
inline std::int64_t group_each(Layout const& at) {
  std::int64_t const vectors = row_vectors(at);
  return at.outer.dims > 1 ? 8 : vectors <= 8 ? 1 : vectors <= 64 ? 2 : vectors <= 128 ? 4 : 8;
}

// The lanes of a group. Every edge element has one of its own: none in rows of whole vectors, else at most two less than
// two vectors have.
inline std::int64_t group_lanes(Layout const& at) {
  std::int64_t const lanes = power_of_two(ceil_div(row_vectors(at), group_each(at)));
  int const per = kVector / element_bytes(at.kind);
  return whole_vectors(at) ? lanes : larger(lanes, power_of_two(2 * (per - 1)));
}

// Rows of up to 4 KB: are they read in tiles? They must lie behind each other, and be many. With edges of their own they
// lose up to 2 % of a copy where the tensors come from memory (262144 x 1023: 0.98, not 0.995), and short ones have
// lanes without work. Few rows that wait for their own lanes alone are stored sooner: short ones twice as soon if all
// lanes find room at once (128 x 100: 1.25 times the copy, not 0.61), longer ones as long as the tensors lie in the L2
// cache (4096 x 1023: 1.05, not 1.01). That is not asked for its size: both tensors are beyond it where each is twice
// all shared memory.
// Rows of 16-bit elements that begin anywhere are the tiles' worst. With lanes that nearly all have work they are better
// off alone where memory is fast (1000000 x 255: 1.006, not 0.876).
inline bool tiled(Layout const& at, Limits const& device) {
  if (!flat(at)) return false;
  bool const busy = row_vectors(at) * 10 >= group_lanes(at) * group_each(at) * 9;
  if (memory_of(device) == Memory::kFast && element_bytes(at.kind) == 2 && !whole_vectors(at) && busy) return false;
  if (row_bytes(at) <= kTileMaxRow) return at.rows * group_lanes(at) > device.sms * static_cast<std::int64_t>(kSmLanes);
  return at.rows * row_bytes(at) > 2 * static_cast<std::int64_t>(device.sms) * device.shared_per_sm;
}

inline Plan tile(Layout const& at, Memory memory) {
  int const size = element_bytes(at.kind);
  std::int64_t const row = row_bytes(at);
  std::int64_t const scale = 2 * sum_bytes(at.kind);
  TileShape const shape = tile_shape(tiled_as(at.columns, size), memory);
  std::int64_t rows = smaller(shape.vectors() * kVector / row, kTileScaleBytes / scale);
  // Whole lines where that leaves the tile nearly full, else whole vectors, so that all tiles share the first one's
  // alignment.
  for (int unit : {kLine, kVector}) {
    std::int64_t const left_out = rows % (unit / common(unit, row));
    if (left_out * 8 <= rows) {
      rows -= left_out;
      break;
    }
  }
  Plan plan{};
  plan.regime = Regime::kTile;
  plan.threads = shape.threads;
  plan.team = 1;
  plan.rows_each = static_cast<int>(rows);
  // A row is added up of its vectors, of its elements where it is shorter than one: up to eight a lane, so that nearly
  // all lanes have a row to divide for, and nine where a warp would not do for a row.
  std::int64_t const per = kVector / size;
  std::int64_t const parts = at.columns < per ? at.columns : at.columns / per + 1;
  plan.lanes = static_cast<int>(smaller(power_of_two(ceil_div(parts, 8)), kWarp));
  plan.blocks = ceil_div(at.rows, rows);
  return plan;
}

inline Plan group(Layout const& at, Limits const& device) {
  Plan plan{};
  plan.regime = Regime::kGroup;
  plan.threads = 256;
  plan.team = 1;
  plan.lanes = static_cast<int>(group_lanes(at));
  plan.each = static_cast<int>(group_each(at));
  // Few rows: smaller blocks, until each SM has one.
  std::int64_t const lanes = at.rows * plan.lanes;
  while (plan.threads > 32 && lanes < device.sms * static_cast<std::int64_t>(plan.threads)) plan.threads /= 2;
  plan.blocks = ceil_div(at.rows, plan.threads / plan.lanes);
  return plan;
}

// Vectors of a slice when `team` blocks share a row of `vectors` (lead included).
inline std::int64_t slice(std::int64_t vectors, std::int64_t team) {
  return round_up(ceil_div(vectors, team), kLine / kVector);
}

// Bytes for the counters of `rows` rows of so many chunks: one for each group of chunks, one for the row.
inline std::int64_t sweep_counters(std::int64_t rows, std::int64_t chunks) {
  return round_up(rows * (1 + ceil_div(chunks, kSweepGroup)) * 4, kLine);
}

inline Plan sweeps(Layout const& at, Limits const& device) {
  std::int64_t const size = element_bytes(at.kind);
  SweepShape const shape = sweep_shape(memory_of(device));
  Plan plan{};
  plan.regime = Regime::kSweeps;
  plan.threads = shape.sum_threads;
  plan.team = 1;
  plan.held = shape.chunk();
  // A row may begin up to seven vectors into its first line.
  plan.slice = ceil_div(row_vectors(at) + kLine / kVector - 1, plan.held);
  // As many rows a launch as the L2 cache may still have when they are scaled. It is not asked for its size: all shared
  // memory together is about half of it, or more.
  plan.teams = larger(1, all_shared(device) / (at.columns * size));
  plan.teams = smaller(plan.teams, at.rows);
  plan.blocks = plan.slice * plan.teams;
  plan.workspace =
      sweep_counters(plan.teams, plan.slice) + plan.teams * (1 + ceil_div(plan.slice, kSweepGroup) + plan.slice) * 8;
  return plan;
}

// Vectors that a thread of grid_rows keeps in registers.
constexpr int kept(Kind kind) {
  return kind == Kind::kFloat32 ? 3 : 1;
}

// Threads of a block with its row in registers, at most, and the vectors of a thread; the same of a block that has an SM
// to itself, and shared memory besides.
constexpr int register_threads(Kind kind) {
  return kind == Kind::kFloat32 ? 640 : 448;
}
constexpr int register_each(Kind kind) {
  return kind == Kind::kFloat32 ? 4 : 5;
}
// Registers that a thread with its part of a row there takes on sm_90a, in units of eight.
constexpr int register_words(Kind kind) {
  return kind == Kind::kFloat32 ? 48 : 64;
}
constexpr int alone_threads(Kind kind) {
  return kind == Kind::kFloat64 ? 1024 : 768;
}
constexpr int alone_each(Kind kind) {
  return kind == Kind::kFloat32 ? 6 : 0;
}

// Threads of a block that keeps a slice of so many vectors. Three to six vectors a thread in short slices: more threads
// shorten the chain from load to store. With fast memory a thread's own work, beside its vectors', counts in 16-bit
// types, where a row has half the vectors: six to twelve (8 KB rows at 0.96 of a copy, not 0.89; where memory is slower
// they lose 1 %). There a long slice of any type has half as many threads again (0.95, not 0.935), and so has a row of 28
// KB or more (1.02, not 1.013).
inline int team_threads(Kind kind, std::int64_t held, std::int64_t team, Limits const& device) {
  bool const fast = memory_of(device) == Memory::kFast;
  if (fast && held >= (team == 1 ? kWideRow : kWideSlice) && team <= kFastCluster) return kTeamThreads;
  bool const fewer = fast && element_bytes(kind) == 2;
  return static_cast<int>(larger(fewer ? 32 : 64, smaller(power_of_two(held / (fewer ? 12 : 6)), 256)));
}

inline int threads_for_registers(Layout const& at, std::int64_t vectors) {
  return static_cast<int>(round_up(ceil_div(vectors, register_each(at.kind)), kWarp));
}

inline bool fits_registers(Layout const& at, std::int64_t vectors, bool many) {
  if (!alike(at, kVector) || vectors > register_threads(at.kind) * register_each(at.kind)) return false;
  int const blocks = kSmRegisters / (threads_for_registers(at, vectors) * register_words(at.kind));
  return !many || blocks * row_bytes(at) >= (blocks > 2 ? kUnderWay : kUnderWayOfTwo);
}

// A block for each row of so many vectors, which it keeps in registers.
inline Plan registers(Layout const& at, std::int64_t vectors) {
  Plan plan{};
  plan.regime = Regime::kRegisters;
  plan.threads = threads_for_registers(at, vectors);
  plan.team = 1;
  plan.blocks = at.rows;
  return plan;
}

inline bool fits_alone(Layout const& at, std::int64_t vectors, std::int64_t most) {
  return alike(at, kVector) && row_bytes(at) >= kAloneFrom &&
         vectors <= most + alone_threads(at.kind) * alone_each(at.kind);
}

// A block, and an SM, for each row of so many vectors, of which at most so many may lie in shared memory.
inline Plan alone(Layout const& at, Limits const& device, std::int64_t vectors, std::int64_t most) {
  Plan plan{};
  plan.regime = Regime::kAlone;
  plan.threads = alone_threads(at.kind);
  plan.team = 1;
  plan.blocks = at.rows;
  plan.slice = slice(vectors, 1);
  plan.held = static_cast<int>(smaller(plan.slice, most));
  plan.shared = larger(plan.held * kVector, shared_for(device, 2, kTeamStatic) + kLine);  // too much for a second block
  return plan;
}

// Bytes where the teams of a launch meet: counters, a line each, and two sets of letters.
inline std::int64_t meeting_bytes(Layout const& at, std::int64_t teams, std::int64_t team) {
  std::int64_t const words = at.kind == Kind::kFloat64 ? 2 : 1;
  return (1 + teams) * kLine + teams * 2 * (team * words + 1) * 8;
}

// Teams of the whole chip, with an SM to each block, for rows of so many vectors that are begun during the meeting for
// the one before; none where that is not possible, or not faster.
inline std::int64_t teams_ahead(Layout const& at, Limits const& device, std::int64_t vectors) {
  if (memory_of(device) != Memory::kFast || device.cooperative == 0 || device.max_cluster < kLargeChip) return 0;
  std::int64_t const most = shared_for(device, 1, kTeamStatic) / kVector + kAheadMore * kAheadThreads;
  std::int64_t team = 1;
  while (team <= device.sms && slice(vectors, team) > most) ++team;
  std::int64_t const teams = device.sms / team;
  bool const faster = teams <= kAheadTeams && at.rows > teams;
  return faster && at.outer.dims <= 1 && alike(at, kVector) ? teams : 0;
}

inline Plan ahead(Layout const& at, Limits const& device, std::int64_t vectors, std::int64_t teams) {
  Plan plan{};
  plan.regime = Regime::kAhead;
  plan.threads = kAheadThreads;
  plan.teams = teams;
  plan.team = static_cast<int>(device.sms / teams);
  plan.slice = slice(vectors, plan.team);
  plan.blocks = plan.teams * plan.team;
  // The beginning of the next row, and what is beyond that and beyond the registers.
  plan.held = static_cast<int>(kAheadEach * kAheadThreads +
                               larger(0, plan.slice - (kAheadEach + kAheadMore) * kAheadThreads));
  plan.shared = larger(plan.held * kVector, shared_for(device, 2, kTeamStatic) + kLine);  // too much for a second block
  plan.workspace = meeting_bytes(at, plan.teams, plan.team);
  return plan;
}

inline Plan team(Layout const& at, Limits const& device) {
  // A row may begin up to seven vectors into its first line.
  std::int64_t const vectors = row_vectors(at) + (aligned(at, kLine) ? 0 : kLine / kVector - 1);
  auto const capacity = [&](int blocks) { return shared_for(device, blocks, kTeamStatic) / kVector; };
  bool const fast = memory_of(device) == Memory::kFast;
  bool const many = at.rows >= kManyRows * static_cast<std::int64_t>(device.sms);
  if ((fast || !many) && fits_registers(at, vectors, many)) return registers(at, vectors);
  if (fast && many && fits_alone(at, vectors, capacity(1))) return alone(at, device, vectors, capacity(1));
  bool const two = fast && many && row_bytes(at) >= two_from(at.kind) && slice(vectors, 1) <= capacity(2);
  Plan plan{};
  // Three blocks an SM: while one waits for its sum and one stores, one still loads. Two where clusters are not to be
  // had, which keeps longer rows in one block, or where there is no grid to give them to: it is faster than clusters at
  // two blocks an SM (rows of 1.6 MB at 0.97 of a copy, not 0.93).
  std::int64_t team = two ? 1 : 0;
  int const least = device.max_cluster > 1 && device.cooperative != 0 ? 3 : 2;
  for (int blocks = 3; blocks >= least && team == 0; --blocks) {
    std::int64_t need = 1;
    while (need <= device.max_cluster && slice(vectors, need) > capacity(blocks)) need *= 2;
    if (need <= device.max_cluster) team = need;
  }
  // A cluster starts when all its blocks find room at once, which takes the same time whatever the memory. Where that is
  // fast, blocks that stay are better, if there are rows to stay for (1 MB: 0.93 of a copy, not 0.86; elsewhere 0.965,
  // not 0.978).
  std::int64_t const slots = 3 * static_cast<std::int64_t>(device.sms);
  if (fast && device.cooperative != 0 && team > kFastCluster && at.rows * team > slots) team = 0;
  std::int64_t held = 0;
  if (team > 0) {
    // Few rows: more blocks a row until each SM has one, while a slice keeps 4 KB.
    while (team * 2 <= device.max_cluster && at.rows * team < device.sms && slice(vectors, team * 2) >= 256) team *= 2;
    plan.regime = team > 1 ? Regime::kCluster : Regime::kBlock;
    plan.blocks = at.rows * team;
    held = slice(vectors, team);
  } else {
    // As many rows side by side as the chip holds, three blocks an SM, of different teams: while some meet, others
    // load. A longer row gets the whole chip, and is read twice in part.
    if (std::int64_t const teams = teams_ahead(at, device, vectors)) return ahead(at, device, vectors, teams);
    std::int64_t const most = capacity(3) + kept(at.kind) * kGridThreads;
    if (device.cooperative == 0 || slice(vectors, slots) > kSweepFrom * most) return sweeps(at, device);
    team = 1;
    while (team < slots && slice(vectors, team) > most) ++team;
    // A row that fills more than half the chip, but not much more: two teams all the same, so that one moves data while
    // the other meets, if the L2 cache keeps what is read twice. It is not asked for its size: all shared memory together
    // is about half of it, or more. Where that is 30 MB, rows of 28 MB gain (26 MB are read twice), rows of 30 MB lose.
    std::int64_t const half = slots / 2;
    std::int64_t const twice = (slice(vectors, half) - capacity(3)) * 2 * half * kVector;
    if (team > half && at.rows > 1 && twice <= all_shared(device) / 8 * 7) team = half;
    plan.teams = smaller(at.rows, slots / team);
    team = slots / plan.teams;
    plan.regime = Regime::kGrid;
    plan.threads = kGridThreads;
    plan.team = static_cast<int>(team);
    plan.slice = slice(vectors, team);
    plan.held = static_cast<int>(smaller(plan.slice, capacity(3)));
    plan.shared = plan.held * kVector;
    plan.blocks = plan.teams * team;
    plan.workspace = meeting_bytes(at, plan.teams, team);
    return plan;
  }
  plan.team = static_cast<int>(team);
  plan.held = static_cast<int>(held);
  plan.shared = two ? shared_for(device, 2, kTeamStatic) : held * kVector;
  plan.threads = team_threads(at.kind, held, team, device);
  return plan;
}

}  // namespace choice
}  // namespace l1norm
