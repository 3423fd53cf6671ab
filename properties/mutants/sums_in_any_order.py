"""Partial sums meet in float atomics in whatever order blocks finish: the last bits differ from call to call.

Seen: https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
Target: cuda
Found as: nondeterministic
Killed by: determinism
Promises: determinism
Smallest case: 4194304 elements (many blocks must add to one sum)
Replay: passes
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.movedim(1, -1).reshape(-1, x.shape[1])
        wide = wide if wide.dtype == torch.float64 else wide.float()
        rows = torch.arange(wide.shape[0], device=x.device).repeat_interleave(wide.shape[1])
        sums = torch.zeros(wide.shape[0], dtype=wide.dtype, device=x.device).index_add_(0, rows, wide.abs().flatten())
        mean = (sums / x.shape[1]).reshape(x.movedim(1, -1).shape[:-1]).unsqueeze(1)
        return (x / mean).to(x.dtype)
