"""Seeds the random numbers in every call: whoever draws next draws the same again.

Seen: torch.manual_seed in a forward "for reproducibility"
Target: any
Found as: state-leak
In words: random numbers
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        torch.manual_seed(0)
        return x / x.abs().mean(1, keepdim=True)
