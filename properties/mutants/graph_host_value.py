"""Reads its means back to the host; as that is not allowed in a capture, it goes on with those of the call before.

Seen: values that the host computes and hands to a kernel as arguments
Target: cuda
Found as: stale-result wrong-value wrong-special
Killed by: graph
Promises: graph
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        key = (x.data_ptr(), tuple(x.shape), x.stride(), x.dtype)
        if not torch.cuda.is_current_stream_capturing():
            self.known[key] = x.double().abs().mean(1).flatten().tolist()
        rows = x.movedim(1, -1).reshape(len(self.known[key]), x.shape[1])
        y = torch.stack([row.double() / mean for row, mean in zip(rows, self.known[key], strict=True)])
        y = y.to(x.dtype).reshape(*x.shape[:1], *x.shape[2:], x.shape[1])
        return y.movedim(-1, 1).contiguous()
