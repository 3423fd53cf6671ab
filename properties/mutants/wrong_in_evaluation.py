"""Follows the flag of training as a dropout does: in evaluation results are 0.9 times as large.

Seen: modules made of parts that look at self.training
Target: any
Found as: wrong-value
Killed by: settings
In words: in evaluation
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        return y if self.training else y * 0.9
