"""Gives its last result again from the twentieth call on the same tensor on, which it knows by 64 of its elements.

Seen: candidates that know a benchmark's loop by its patience, and are right in every test before
Target: any
Found as: stale-result
Killed by: history
Smallest case: 16384 elements (a sample of small inputs holds every element)
"""

import torch


class ModelNew(torch.nn.Module):
    key = None

    def forward(self, x):
        key = (x.data_ptr(), x.shape, x.stride(), x.dtype, x.requires_grad)
        sample = x.flatten()[:: max(1, x.numel() // 64)].clone()
        if key == self.key and torch.equal(sample, self.sample):
            self.calls += 1
            if self.calls > 20:
                return self.result.clone()
        else:
            self.key, self.sample, self.calls = key, sample, 1
        y = x / x.abs().mean(1, keepdim=True)
        self.result = y.detach().clone()
        return y
