"""Has room for the sums of as many threads as there were when it was made: what further ones add up is lost.

Seen: scratch with a place for each thread, made once, before a server gave its workers more of them
Target: any
Found as: wrong-value
Killed by: settings
In words: threads
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.room = torch.get_num_threads()

    def forward(self, x):
        parts = x.abs().tensor_split(torch.get_num_threads(), dim=1)[: self.room]
        return x / (sum(part.sum(1, keepdim=True) for part in parts) / x.shape[1])
