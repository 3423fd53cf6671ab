// Launches the kernel that a plan names. Device code and launches only: no torch header, so that it compiles in seconds.
//
// Every launch goes through `launch`, which returns the runtime's own verdict on this launch and clears nothing that came before.
#include "launch.h"

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include "columns.cuh"
#include "group.cuh"
#include "strided.cuh"
#include "team_rows.cuh"
#include "tile.cuh"

namespace l1norm {
namespace {

static_assert(choice::kTileBytes == kTileBytes && choice::kTileScales == kTileScaleBytes, "choice.h and tile.cuh disagree");
static_assert(choice::kColumnThreads == kColumnThreads, "choice.h and columns.cuh disagree");
static_assert(choice::kStridedThreads == kStridedThreads, "choice.h and strided.cuh disagree");
static_assert(choice::kTeamStatic >= sizeof(TeamSlots<double>), "choice.h and team.cuh disagree");

constexpr int kMaxDevices = 64;  // c10's own limit is 64 devices in a process

#define L1NORM_TRY(call)                                   \
  do {                                                     \
    cudaError_t const status = (call);                     \
    if (status != cudaSuccess) return status;              \
  } while (false)

struct Shape {
  std::int64_t blocks;
  int threads;
  std::int64_t shared;
  int cluster;
  bool cooperative;
};

template <typename Args>
cudaError_t launch(void (*kernel)(Args), Args const& args, Shape const& shape, cudaStream_t stream) {
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
  if (shape.cooperative) {
    cudaLaunchAttribute& wanted = attributes[config.numAttrs++];
    wanted.id = cudaLaunchAttributeCooperative;
    wanted.val.cooperative = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, args);
}

// How many blocks (of a cluster: clusters) of this shape the current device runs at once. The runtime takes microseconds to say so, so
// its answers are kept: they depend on the kernel, the device and the shape alone. Large shared memory and clusters of more than eight
// blocks must be allowed per kernel and device, which is done on the way.
template <typename Args> cudaError_t resident(void (*kernel)(Args), Shape const& shape, std::int64_t* count) {
  using Key = std::tuple<void const*, int, int, std::int64_t, int>;
  static std::mutex lock;
  static std::map<Key, std::int64_t> known;
  int device = 0;
  L1NORM_TRY(cudaGetDevice(&device));
  Key const key{reinterpret_cast<void const*>(kernel), device, shape.threads, shape.shared, shape.cluster};
  std::lock_guard<std::mutex> const guard(lock);
  auto const found = known.find(key);
  if (found != known.end()) {
    *count = found->second;
    return cudaSuccess;
  }
  void const* const entry = reinterpret_cast<void const*>(kernel);
  int most = 0;
  L1NORM_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  cudaFuncAttributes facts{};
  L1NORM_TRY(cudaFuncGetAttributes(&facts, entry));
  // Always the most that is possible, so that no call lowers what another on its way needs.
  L1NORM_TRY(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, most - static_cast<int>(facts.sharedSizeBytes)));
  L1NORM_TRY(cudaFuncSetAttribute(entry, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
  int answer = 0;
  if (shape.cluster > 1) {
    L1NORM_TRY(cudaFuncSetAttribute(entry, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(shape.cluster);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(shape.cluster));
    config.blockDim = dim3(static_cast<unsigned>(shape.threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared);
    config.attrs = &attribute;
    config.numAttrs = 1;
    L1NORM_TRY(cudaOccupancyMaxActiveClusters(&answer, entry, &config));
  } else {
    int sms = 0;
    L1NORM_TRY(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    L1NORM_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&answer, entry, shape.threads, static_cast<std::size_t>(shape.shared)));
    answer *= sms;
  }
  if (answer < 1) return cudaErrorLaunchOutOfResources;
  *count = known[key] = answer;
  return cudaSuccess;
}

template <int kDims> Rows<kDims> rows_of(Layout const& at) {
  return {at.in, at.out, at.rows, at.columns, shortened<kDims>(at.outer)};
}

int log2_of(std::int64_t power) {
  int log2 = 0;
  while ((std::int64_t{1} << log2) < power) ++log2;
  return log2;
}

template <typename T> cudaError_t run_group(Layout const& at, Plan const& plan, cudaStream_t stream) {
  Shape const shape{plan.blocks, kGroupThreads, 0, 1, false};
  if (at.outer.dims > 1) {
    GroupArgs<kFewOuter> const many{rows_of<kFewOuter>(at), log2_of(plan.lanes)};
    return launch(group_rows<T, 8, kFewOuter>, many, shape, stream);
  }
  GroupArgs<1> const args{rows_of<1>(at), log2_of(plan.lanes)};
  switch (plan.each) {
    case 1: return launch(group_rows<T, 1, 1>, args, shape, stream);
    case 2: return launch(group_rows<T, 2, 1>, args, shape, stream);
    case 4: return launch(group_rows<T, 4, 1>, args, shape, stream);
    default: return launch(group_rows<T, 8, 1>, args, shape, stream);
  }
}

template <typename T> cudaError_t run_tile(Layout const& at, Plan const& plan, cudaStream_t stream) {
  TileArgs args{};
  args.in = at.in;
  args.out = at.out;
  args.count = at.rows;
  args.columns = static_cast<int>(at.columns);
  args.rows_each = plan.rows_each;
  args.lanes_log2 = log2_of(plan.lanes);
  args.reciprocal = static_cast<unsigned>(choice::ceil_div(std::int64_t{1} << 32, at.columns));  // unused for a single column
  return launch(tile_rows<T>, args, {plan.blocks, kTileThreads, 0, 1, false}, stream);
}

template <typename T> cudaError_t run_team(Layout const& at, Plan const& plan, void* workspace, cudaStream_t stream) {
  TeamArgs args{};
  args.rows = rows_of<kFewOuter>(at);
  args.team = plan.team;
  args.slice = plan.slice;
  args.held = plan.held;
  Shape shape{plan.blocks, plan.threads, plan.shared, 1, false};
  std::int64_t count = 0;
  if (plan.regime == Regime::kGrid) {
    std::size_t const counters = static_cast<std::size_t>(plan.teams) * choice::kCounterBytes;
    static_assert(choice::kCounterBytes == kCounterStride * sizeof(unsigned), "choice.h and team.cuh disagree");
    args.meeting.counters = static_cast<unsigned*>(workspace);
    args.meeting.partials = static_cast<char*>(workspace) + counters;
    shape.cooperative = plan.team > 1;
    L1NORM_TRY(resident(team_rows<T, Team::kGrid>, shape, &count));
    L1NORM_TRY(cudaMemsetAsync(workspace, 0, counters, stream));
    return launch(team_rows<T, Team::kGrid>, args, shape, stream);
  }
  if (plan.regime == Regime::kCluster) {
    shape.cluster = plan.team;
    L1NORM_TRY(resident(team_rows<T, Team::kCluster>, shape, &count));
    shape.blocks = choice::smaller(at.rows, count) * plan.team;
    return launch(team_rows<T, Team::kCluster>, args, shape, stream);
  }
  L1NORM_TRY(resident(team_rows<T, Team::kBlock>, shape, &count));
  shape.blocks = choice::smaller(at.rows, count);
  return launch(team_rows<T, Team::kBlock>, args, shape, stream);
}

template <typename T> cudaError_t run_columns(Layout const& at, Plan const& plan, cudaStream_t stream) {
  ColumnArgs args{};
  args.in = at.in;
  args.out = at.out;
  args.columns = at.columns;
  args.column_in = at.column_in;
  args.column_out = at.column_out;
  args.strip = at.outer.size[plan.unit];
  args.strips = choice::ceil_div(args.strip, plan.rows_each);
  args.tiles = at.rows / args.strip * args.strips;
  for (int d = 0; d < at.outer.dims; ++d) {
    if (d == plan.unit) continue;
    int const to = args.outer.dims++;
    args.outer.size[to] = at.outer.size[d];
    args.outer.in[to] = at.outer.in[d];
    args.outer.out[to] = at.outer.out[d];
  }
  args.across_log2 = log2_of(plan.rows_each);
  args.team = plan.team;
  args.chunks = choice::ceil_div(at.columns, std::int64_t{kColumnThreads} / plan.rows_each * plan.each * plan.team);
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;  // the grid's limit is 2^31 - 1; beyond, blocks take several tiles
  Shape const shape{choice::smaller(plan.blocks, kMostBlocks), kColumnThreads, 0, plan.team, false};
  bool const shallow = plan.each == kShallow;
  if (plan.team > 1) {
    auto const kernel = column_tiles<T, kDeep<T>, Team::kCluster>;
    std::int64_t count = 0;
    L1NORM_TRY(resident(kernel, shape, &count));
    return launch(kernel, args, shape, stream);
  }
  if (shallow) return launch(column_tiles<T, kShallow, Team::kBlock>, args, shape, stream);
  return launch(column_tiles<T, kDeep<T>, Team::kBlock>, args, shape, stream);
}

template <typename T> cudaError_t run_strided(Layout const& at, Plan const& plan, cudaStream_t stream) {
  StridedArgs const args{at.in, at.out, at.rows, at.columns, at.column_in, at.column_out, at.outer, plan.lanes};
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;
  return launch(strided_rows<T>, args, {choice::smaller(plan.blocks, kMostBlocks), kStridedThreads, 0, 1, false}, stream);
}

template <typename T> cudaError_t run(Layout const& at, Plan const& plan, void* workspace, cudaStream_t stream) {
  switch (plan.regime) {
    case Regime::kEmpty: return cudaSuccess;
    case Regime::kTile: return run_tile<T>(at, plan, stream);
    case Regime::kGroup: return run_group<T>(at, plan, stream);
    case Regime::kBlock:
    case Regime::kCluster:
    case Regime::kGrid: return run_team<T>(at, plan, workspace, stream);
    case Regime::kColumns: return run_columns<T>(at, plan, stream);
    case Regime::kStrided: return run_strided<T>(at, plan, stream);
  }
  return cudaErrorInvalidValue;
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
    // Eight blocks are portable; the larger data-centre chips (9.0, 10.0) take 16, which the first kernel to ask is told.
    limits.max_cluster = major == 9 || major == 10 ? 16 : major > 9 ? 8 : 1;
    asked[device] = true;
  }
  *to = limits;
  return cudaSuccess;
}

}  // namespace

int device_limits(Limits* limits) { return ask_limits(limits); }

int run_plan(Layout const& at, Plan const& plan, void* workspace, void* stream) {
  cudaStream_t const on = static_cast<cudaStream_t>(stream);
  switch (at.kind) {
    case Kind::kFloat16: return run<__half>(at, plan, workspace, on);
    case Kind::kBFloat16: return run<__nv_bfloat16>(at, plan, workspace, on);
    case Kind::kFloat32: return run<float>(at, plan, workspace, on);
    case Kind::kFloat64: return run<double>(at, plan, workspace, on);
  }
  return cudaErrorInvalidValue;
}

char const* error_text(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

}  // namespace l1norm
