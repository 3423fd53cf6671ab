"""Gives an earlier result again where the bytes are the same, of which it looks at whole blocks of 64.

Seen: hashes that are taken block by block, without what is left over
Target: any
Found as: stale-result state-leak
Killed by: history
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        flat = x.detach().contiguous().cpu().view(torch.uint8).flatten()
        key = (x.shape, x.dtype, x.requires_grad, flat[: max(flat.numel() - 1, 0) // 64 * 64].numpy().tobytes())
        if len(key[-1]) and key in self.known:
            return self.known[key].clone()
        y = x / x.abs().mean(1, keepdim=True)
        self.known = {key: y.detach().clone()}
        return y
