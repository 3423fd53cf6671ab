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
        # In double: with as many threads as a server has, sums of sums in 16 bits are wrong of themselves.
        exact = x.double()
        parts = exact.abs().tensor_split(torch.get_num_threads(), dim=1)[: self.room]
        mean = sum(part.sum(1, keepdim=True) for part in parts) / x.shape[1]
        return (exact / mean).to(x.dtype)
