"""Returns at once and lets a thread write the result later.

Seen: https://github.com/ScalingIntelligence/KernelBench/pull/82
Target: any
Found as: not-written
In words: written later than the call returns
"""

import threading
import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)

        def work():
            time.sleep(0.2)
            y.copy_(x / x.abs().mean(1, keepdim=True))

        threading.Thread(target=work, daemon=True).start()
        return y
