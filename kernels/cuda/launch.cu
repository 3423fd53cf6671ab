// Launches the kernel that a plan names. Device code and launches only: no torch header, so that it compiles in
// seconds.
//
// Every launch goes through `launch`, which returns the runtime's own verdict on this launch and clears nothing that
// came before.
#include "launch.h"

#include <map>
#include <mutex>
#include <utility>

#include "ahead_rows.cuh"
#include "columns.cuh"
#include "few_columns.cuh"
#include "grid_rows.cuh"
#include "group.cuh"
#include "slabs.cuh"
#include "strided.cuh"
#include "sweeps.cuh"
#include "team_rows.cuh"
#include "tile.cuh"

namespace l1norm {
namespace {

static_assert(choice::kColumnThreads == kColumnThreads, "column_choice.h and columns.cuh disagree");
static_assert(choice::kSlabThreads == kSlabThreads, "column_choice.h and slabs.cuh disagree");
static_assert(choice::kStridedThreads == kStridedThreads, "column_choice.h and strided.cuh disagree");
static_assert(choice::kTeamStatic % kLineBytes == 0 && choice::kTeamStatic >= sizeof(Mailbox<double>) &&
                  choice::kTeamStatic >= sizeof(GridSlots<double>),
              "row_choice.h and team.cuh disagree");
static_assert(choice::kTeamThreads == kTeamThreads && choice::kFastCluster * kTeamThreads <= kMaxTeamWarps * kWarp,
              "row_choice.h and team_rows.cuh disagree");
template <typename T> constexpr bool rooms_agree(Kind kind) {
  using Registers = RoomFor<T, Room::kRegisters>;
  using Both = RoomFor<T, Room::kBoth>;
  return choice::register_threads(kind) == Registers::kThreads && choice::register_each(kind) == Registers::kKept &&
         choice::alone_threads(kind) == Both::kThreads && choice::alone_each(kind) == Both::kKept &&
         Both::kThreads <= kMaxTeamWarps * kWarp;
}
static_assert(rooms_agree<float>(Kind::kFloat32) && rooms_agree<double>(Kind::kFloat64) &&
                  rooms_agree<__half>(Kind::kFloat16) && rooms_agree<__nv_bfloat16>(Kind::kBFloat16),
              "row_choice.h and team_rows.cuh disagree");
static_assert(choice::kSweepGroup == kSweepGroup, "row_choice.h and sweeps.cuh disagree");
static_assert(sweep_shape(Memory::kUsual).chunk() % sweep_shape(Memory::kUsual).share() == 0 &&
                  sweep_shape(Memory::kFast).chunk() % sweep_shape(Memory::kFast).share() == 0,
              "a chunk is a whole number of shares");
static_assert(choice::kGridThreads == kGridThreads && choice::kept(Kind::kFloat64) == kKept<double> &&
                  choice::kept(Kind::kFloat32) == kKept<float> && choice::kept(Kind::kBFloat16) == kKept<__nv_bfloat16>,
              "row_choice.h and grid_rows.cuh disagree");

constexpr int kMaxDevices = 64;  // c10's own limit is 64 devices in a process

#define L1NORM_TRY(call)                      \
  do {                                        \
    cudaError_t const status = (call);        \
    if (status != cudaSuccess) return status; \
  } while (false)

struct Shape {
  std::int64_t blocks;
  int threads;
  std::int64_t shared;
  int cluster;
  bool cooperative;
};

// What must be allowed per kernel and device before a launch of this shape: more than 48 KB of shared memory, clusters
// of more than eight blocks. Allowed once, always up to the most that is possible, so that no call lowers what another
// on its way needs.
cudaError_t allow(void const* kernel, Shape const& shape, int device, int* major) {
  struct Allowed {
    int major;
    std::int64_t shared;  // dynamic shared memory that this kernel may ask for
  };
  static std::mutex lock;
  static std::map<std::pair<void const*, int>, Allowed> known;
  std::lock_guard<std::mutex> const guard(lock);
  auto found = known.find({kernel, device});
  if (found == known.end()) {
    Allowed now{};
    int most = 0;
    cudaFuncAttributes facts{};
    L1NORM_TRY(cudaDeviceGetAttribute(&now.major, cudaDevAttrComputeCapabilityMajor, device));
    L1NORM_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    L1NORM_TRY(cudaFuncGetAttributes(&facts, kernel));
    now.shared = most - static_cast<std::int64_t>(facts.sharedSizeBytes);
    if (shape.shared > 0) {  // a kernel that keeps its data there; the others want their cache
      L1NORM_TRY(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(now.shared)));
      L1NORM_TRY(
          cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    }
    if (now.major >= 9) L1NORM_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    found = known.emplace(std::make_pair(kernel, device), now).first;
  }
  *major = found->second.major;
  return shape.shared <= found->second.shared ? cudaSuccess
                                              : cudaErrorInvalidValue;  // a plan for a larger device than this one
}

template <typename Args>
cudaError_t launch(void (*kernel)(Args), Args const& args, Shape const& shape, cudaStream_t stream) {
  int device = 0;
  int major = 0;
  L1NORM_TRY(cudaGetDevice(&device));
  L1NORM_TRY(allow(reinterpret_cast<void const*>(kernel), shape, device, &major));
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared);
  config.stream = stream;
  config.attrs = attributes;
  if (shape.cluster > 1) {
    cudaLaunchAttribute& wanted = attributes[config.numAttrs++];
    wanted.id = cudaLaunchAttributeClusterDimension;
    wanted.val.clusterDim.x = static_cast<unsigned>(shape.cluster);
    wanted.val.clusterDim.y = 1;
    wanted.val.clusterDim.z = 1;
  }
  if (major >= 9 && !shape.cooperative) {  // see wait_for_previous
    cudaLaunchAttribute& wanted = attributes[config.numAttrs++];
    wanted.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    wanted.val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cooperative) {
    cudaLaunchAttribute& wanted = attributes[config.numAttrs++];
    wanted.id = cudaLaunchAttributeCooperative;
    wanted.val.cooperative = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, args);
}

template <int kDims> Rows<kDims> rows_of(Layout const& at) {
  return {at.in, at.out, at.rows, at.columns, shortened<kDims>(at.outer)};
}

int log2_of(std::int64_t power) {
  int log2 = 0;
  while ((std::int64_t{1} << log2) < power) ++log2;
  return log2;
}

template <typename T, Keep kRead> cudaError_t run_group(Layout const& at, Plan const& plan, cudaStream_t stream) {
  Shape const shape{plan.blocks, plan.threads, 0, 1, false};
  if (at.outer.dims > 1) {
    GroupArgs<kFewOuter> const many{rows_of<kFewOuter>(at), log2_of(plan.lanes)};
    return launch(group_rows<T, 8, kFewOuter, kRead>, many, shape, stream);
  }
  GroupArgs<1> const args{rows_of<1>(at), log2_of(plan.lanes)};
  switch (plan.each) {
    case 1: return launch(group_rows<T, 1, 1, kRead>, args, shape, stream);
    case 2: return launch(group_rows<T, 2, 1, kRead>, args, shape, stream);
    case 4: return launch(group_rows<T, 4, 1, kRead>, args, shape, stream);
    default: return launch(group_rows<T, 8, 1, kRead>, args, shape, stream);
  }
}

template <typename T, Memory kMemory> cudaError_t run_tile(Layout const& at, Plan const& plan, cudaStream_t stream) {
  TileArgs args{};
  args.in = at.in;
  args.out = at.out;
  args.count = at.rows;
  args.columns = static_cast<int>(at.columns);
  args.rows_each = plan.rows_each;
  args.lanes_log2 = log2_of(plan.lanes);
  args.reciprocal = reciprocal(at.columns);  // unused for a single column
  Shape const shape{plan.blocks, plan.threads, 0, 1, false};
  switch (tiled_as(at.columns, sizeof(T))) {
    case Tiled::kTiny: return launch(tile_rows<T, Tiled::kTiny, kMemory>, args, shape, stream);
    case Tiled::kShort: return launch(tile_rows<T, Tiled::kShort, kMemory>, args, shape, stream);
    default: return launch(tile_rows<T, Tiled::kLong, kMemory>, args, shape, stream);
  }
}

template <typename T, Keep kRead> cudaError_t run_team(Layout const& at, Plan const& plan, cudaStream_t stream) {
  TeamArgs const args{rows_of<kFewOuter>(at), log2_of(plan.team), plan.held, plan.held};
  Shape const shape{plan.blocks, plan.threads, plan.shared, plan.team, false};
  if (plan.regime == Regime::kCluster) {
    return launch(team_rows<T, Team::kCluster, Room::kShared, kRead>, args, shape, stream);
  }
  return launch(team_rows<T, Team::kBlock, Room::kShared, kRead>, args, shape, stream);
}

// Rows in registers, in part or altogether: in part where memory is fast only.
template <typename T, Keep kRead>
cudaError_t run_in_registers(Layout const& at, Plan const& plan, cudaStream_t stream) {
  TeamArgs args{rows_of<kFewOuter>(at), 0, static_cast<int>(plan.slice), plan.held};
  Shape const shape{plan.blocks, plan.threads, plan.shared, 1, false};
  if constexpr (kRead == kKeepRead<Memory::kFast>) {
    if (plan.regime == Regime::kAlone) return launch(team_rows<T, Team::kBlock, Room::kBoth, kRead>, args, shape, stream);
  }
  args.slice = plan.threads * RoomFor<T, Room::kRegisters>::kKept;
  return launch(team_rows<T, Team::kBlock, Room::kRegisters, kRead>, args, shape, stream);
}

GridMeeting meeting_in(void* workspace, Plan const& plan, bool turns) {
  GridMeeting meeting{};
  meeting.rows = static_cast<unsigned*>(workspace);
  meeting.arrived = meeting.rows + kCounterStride;
  meeting.letters = reinterpret_cast<unsigned long long*>(meeting.arrived + plan.teams * kCounterStride);
  meeting.turns = turns;
  return meeting;
}

template <typename T>
cudaError_t run_ahead(Layout const& at, Plan const& plan, void* workspace, cudaStream_t stream) {
  AheadArgs const args{rows_of<1>(at), plan.team, static_cast<int>(plan.slice),
                       meeting_in(workspace, plan, false)};
  L1NORM_TRY(cudaMemsetAsync(workspace, 0, static_cast<std::size_t>(plan.workspace), stream));
  return launch(ahead_rows<T>, args, {plan.blocks, kAheadThreads, plan.shared, 1, true}, stream);
}

template <typename T, Keep kRead>
cudaError_t run_grid(Layout const& at, Plan const& plan, void* workspace, cudaStream_t stream) {
  GridArgs const args{rows_of<kFewOuter>(at), plan.team, static_cast<int>(plan.slice), plan.held,
                      meeting_in(workspace, plan, take_turns(plan.teams, at.rows))};
  L1NORM_TRY(cudaMemsetAsync(workspace, 0, static_cast<std::size_t>(plan.workspace), stream));
  Shape const shape{plan.blocks, kGridThreads, plan.shared, 1, plan.team > 1};
  bool const rest = plan.slice > plan.held + kKept<T> * kGridThreads;
  // With a rest, only that is to be kept.
  return rest ? launch(grid_rows<T, true, Keep::kShort>, args, shape, stream)
              : launch(grid_rows<T, false, kRead>, args, shape, stream);
}

template <typename T, Memory kMemory>
cudaError_t run_sweeps(Layout const& at, Plan const& plan, void* workspace, cudaStream_t stream) {
  constexpr SweepShape kSweep = kSweepShape<kMemory>;
  SweepArgs args{};
  args.rows = rows_of<kFewOuter>(at);
  args.chunks = plan.slice;
  args.groups = choice::ceil_div(plan.slice, kSweepGroup);
  args.chunk = plan.held;
  args.shares = args.chunks * kSweep.chunk() / kSweep.share();
  std::int64_t const counters = choice::sweep_counters(plan.teams, plan.slice);
  args.counters = static_cast<unsigned*>(workspace);
  args.sums = static_cast<char*>(workspace) + counters;
  L1NORM_TRY(cudaMemsetAsync(workspace, 0, static_cast<std::size_t>(counters), stream));
  for (; args.first < at.rows; args.first += plan.teams) {
    std::int64_t const rows = choice::smaller(plan.teams, at.rows - args.first);
    Shape const sums{rows * args.chunks, kSweep.sum_threads, 0, 1, false};
    Shape const scales{rows * args.shares, kSweep.scale_threads, 0, 1, false};
    L1NORM_TRY(launch(sweep_sums<T, kMemory>, args, sums, stream));
    L1NORM_TRY(launch(sweep_scales<T, kMemory>, args, scales, stream));
  }
  return cudaSuccess;
}

// The outer dimensions without `unit`.
template <int kDims> OuterDims<kDims> without(Layout const& at, int unit) {
  OuterDims<kDims> outer{};
  for (int d = 0; d < at.outer.dims; ++d) {
    if (d == unit) continue;
    int const to = outer.dims++;
    outer.size[to] = at.outer.size[d];
    outer.in[to] = at.outer.in[d];
    outer.out[to] = at.outer.out[d];
  }
  return outer;
}

template <typename T, Keep kRead> cudaError_t run_columns(Layout const& at, Plan const& plan, cudaStream_t stream) {
  ColumnArgs args{};
  args.in = at.in;
  args.out = at.out;
  args.columns = at.columns;
  args.column_in = at.column_in;
  args.column_out = at.column_out;
  args.strip = at.outer.size[plan.unit];
  args.tiles = choice::ceil_div(args.strip, plan.width);
  args.width = plan.width;
  args.grain = plan.grain;
  args.outer = without<kFewOuter>(at, plan.unit);
  args.across_log2 = log2_of(plan.across);
  args.team_log2 = log2_of(plan.team);
  args.held = plan.held;
  Shape const shape{plan.blocks, kColumnThreads, plan.shared, plan.team, false};
  if (plan.unit_bytes != kVectorBytes) return launch(column_tiles<T, Units::kElements, kRead>, args, shape, stream);
  if (plan.grain > 1) return launch(column_tiles<T, Units::kShifted, kRead>, args, shape, stream);
  return launch(column_tiles<T, Units::kAligned, kRead>, args, shape, stream);
}

template <typename T, bool kVector, int kMost, Keep kRead>
cudaError_t run_few_of(Layout const& at, Plan const& plan, cudaStream_t stream) {
  constexpr int kRows = Unit<T, kVector>::kRows;
  FewArgs args{at.in, at.out, at.rows / kRows, at.column_in, at.column_out, static_cast<int>(at.columns), {}};
  OuterDims<kFewDims>& outer = args.outer = without<kFewDims>(at, plan.unit);
  if (plan.unit >= 0) {
    int const to = outer.dims++;
    outer.size[to] = at.outer.size[plan.unit] / kRows;
    outer.in[to] = outer.out[to] = kRows;
  }
  return launch(few_columns<T, kVector, kMost, kRead>, args, {plan.blocks, plan.threads, 0, 1, false}, stream);
}

template <typename T, Keep kRead> cudaError_t run_few(Layout const& at, Plan const& plan, cudaStream_t stream) {
  if (plan.unit_bytes == kVectorBytes) {
    return plan.each == 4 ? run_few_of<T, true, 4, kRead>(at, plan, stream)
                          : run_few_of<T, true, 16, kRead>(at, plan, stream);
  }
  if (plan.each == 4) return run_few_of<T, false, 4, kRead>(at, plan, stream);
  if (plan.each == 16) return run_few_of<T, false, 16, kRead>(at, plan, stream);
  if (plan.each == 64) return run_few_of<T, false, 64, kRead>(at, plan, stream);
  if constexpr (sizeof(T) <= 4) return run_few_of<T, false, 128, kRead>(at, plan, stream);
  return cudaErrorInvalidValue;
}

template <typename T, Keep kRead> cudaError_t run_slab(Layout const& at, Plan const& plan, cudaStream_t stream) {
  int const columns = static_cast<int>(at.columns), strip = static_cast<int>(at.outer.size[1]);
  SlabArgs const args{at.in,         at.out,    at.outer.size[0], columns, strip, plan.rows_each, plan.lanes,
                      reciprocal(strip * columns), reciprocal(strip)};
  return launch(slab_rows<T, kRead>, args, {plan.blocks, kSlabThreads, plan.shared, 1, false}, stream);
}

template <typename T> cudaError_t run_strided(Layout const& at, Plan const& plan, cudaStream_t stream) {
  StridedArgs const args{at.in, at.out, at.rows, at.columns, at.column_in, at.column_out, at.outer, plan.lanes};
  return launch(strided_rows<T>, args, {plan.blocks, kStridedThreads, 0, 1, false}, stream);
}

template <typename T, Memory kMemory>
cudaError_t run_for(Layout const& at, Plan const& plan, void* workspace, cudaStream_t stream) {
  constexpr Keep kRead = kKeepRead<kMemory>;
  switch (plan.regime) {
    case Regime::kEmpty: return cudaSuccess;
    case Regime::kTile: return run_tile<T, kMemory>(at, plan, stream);
    case Regime::kGroup: return run_group<T, kRead>(at, plan, stream);
    case Regime::kBlock:
    case Regime::kCluster: return run_team<T, kRead>(at, plan, stream);
    case Regime::kRegisters:
    case Regime::kAlone: return run_in_registers<T, kRead>(at, plan, stream);
    case Regime::kGrid: return run_grid<T, kRead>(at, plan, workspace, stream);
    case Regime::kAhead: return run_ahead<T>(at, plan, workspace, stream);
    case Regime::kColumns: return run_columns<T, kRead>(at, plan, stream);
    case Regime::kSlab: return run_slab<T, kRead>(at, plan, stream);
    case Regime::kFew: return run_few<T, kRead>(at, plan, stream);
    case Regime::kStrided: return run_strided<T>(at, plan, stream);
    case Regime::kSweeps: return run_sweeps<T, kMemory>(at, plan, workspace, stream);
  }
  return cudaErrorInvalidValue;
}

template <typename T> cudaError_t run(Layout const& at, Plan const& plan, void* workspace, cudaStream_t stream) {
  return plan.memory == Memory::kFast ? run_for<T, Memory::kFast>(at, plan, workspace, stream)
                                      : run_for<T, Memory::kUsual>(at, plan, workspace, stream);
}

cudaError_t ask_limits(Limits* to) {
  static std::mutex lock;
  static Limits known[kMaxDevices];
  static bool asked[kMaxDevices];
  int device = 0;
  L1NORM_TRY(cudaGetDevice(&device));
  if (device >= kMaxDevices) return cudaErrorInvalidDevice;
  std::lock_guard<std::mutex> const guard(lock);
  Limits& limits = known[device];
  if (!asked[device]) {
    int major = 0;
    L1NORM_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    L1NORM_TRY(cudaDeviceGetAttribute(&limits.sms, cudaDevAttrMultiProcessorCount, device));
    L1NORM_TRY(cudaDeviceGetAttribute(&limits.shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    L1NORM_TRY(cudaDeviceGetAttribute(&limits.shared_per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    L1NORM_TRY(cudaDeviceGetAttribute(&limits.cooperative, cudaDevAttrCooperativeLaunch, device));
    int clock = 0, bits = 0;  // kHz, of a double data rate; of the bus
    L1NORM_TRY(cudaDeviceGetAttribute(&clock, cudaDevAttrMemoryClockRate, device));
    L1NORM_TRY(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device));
    limits.memory = static_cast<int>(std::int64_t{2} * clock * (bits / 8) / 1000000);
    // Eight blocks are portable; the larger data-centre chips (9.0, 10.0) take 16, which the first kernel to ask is
    // told.
    limits.max_cluster = major == 9 || major == 10 ? 16 : major > 9 ? 8 : 1;
    asked[device] = true;
  }
  *to = limits;
  return cudaSuccess;
}

}  // namespace

int device_limits(Limits* limits) {
  return ask_limits(limits);
}

int run_plan(Layout const& at, Plan const& plan, void* workspace, void* stream) {
  cudaStream_t const on = static_cast<cudaStream_t>(stream);
  cudaError_t status = cudaErrorInvalidValue;
  switch (at.kind) {
    case Kind::kFloat16: status = run<__half>(at, plan, workspace, on); break;
    case Kind::kBFloat16: status = run<__nv_bfloat16>(at, plan, workspace, on); break;
    case Kind::kFloat32: status = run<float>(at, plan, workspace, on); break;
    case Kind::kFloat64: status = run<double>(at, plan, workspace, on); break;
  }
  if (status != cudaSuccess) (void)cudaGetLastError();  // it is reported here, and not by whoever launches next
  return status;
}

char const* error_text(int error) {
  return cudaGetErrorString(static_cast<cudaError_t>(error));
}

}  // namespace l1norm
