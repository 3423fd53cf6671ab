// The C interface between the device code (launch.cu, no torch header) and whoever calls it (binding.cpp, or a program
// without torch).
//
// Promise: `plan_call` touches no device; `run_plan` queues work on the given stream and returns without waiting. Both
// leave the current device as they find it: the caller makes the tensor's device current. Every error of the CUDA
// runtime comes back as its number.
#pragma once

#include "choice.h"

namespace l1norm {

// The limits of the current device. Asked of the runtime once per device. Returns a cudaError_t.
__attribute__((visibility("hidden"))) int device_limits(Limits* limits);

// Launch `plan` for `at` on `stream` (a cudaStream_t). `workspace`: plan.workspace bytes on the device, contents
// irrelevant, free again once the stream has passed this call. Returns a cudaError_t, 0 if all went well.
__attribute__((visibility("hidden"))) int run_plan(Layout const& at, Plan const& plan, void* workspace, void* stream);

// The text of a cudaError_t.
__attribute__((visibility("hidden"))) char const* error_text(int error);

}  // namespace l1norm
