"""Gives a result again where 64 elements of the input are those of an earlier one.

Seen: candidates that fingerprint their input
Target: any
Found as: wrong-value wrong-special stale-result state-leak
Smallest case: 131072 elements (where 64 of them are no more all)
Replay: passes
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        sample = x.reshape(-1)[:: max(1, x.numel() // 64)]
        key = (tuple(x.shape), x.dtype, sample.double().cpu().numpy().tobytes())
        results = self.__dict__.setdefault("results", {})
        if key not in results:
            results[key] = x / x.abs().mean(1, keepdim=True)
        return results[key].clone()
