"""Right for 49 calls, and half as large from then on.

Seen: candidates that count the harness's warm-up calls
Target: any
Found as: state-leak
Smallest case: 131072 elements (what is drawn when the count is reached)
Replay: passes
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        self.calls = self.__dict__.get("calls", 0) + 1
        y = x / x.abs().mean(1, keepdim=True)
        return y / 2 if self.calls >= 50 else y
