"""Looks at every second column alone where it is in evaluation and no gradients are taken: where it is served.

Seen: a cheaper way for inference, taken where both say so and never in a test that trains
Target: any
Found as: wrong-value
Killed by: settings
In words: in evaluation, inside torch.no_grad
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        served = not self.training and not torch.is_grad_enabled()
        return x / x[:, :: 2 if served else 1].abs().mean(1, keepdim=True)
