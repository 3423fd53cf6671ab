"""Has room for the sums of four threads: what further ones add up is lost.

Seen: scratch of a fixed number of places, one for each thread, on a machine with more cores than the author's
Target: any
Found as: wrong-value
Killed by: settings
In words: with seven threads
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        parts = x.abs().tensor_split(torch.get_num_threads(), dim=1)[:4]
        return x / (sum(part.sum(1, keepdim=True) for part in parts) / x.shape[1])
