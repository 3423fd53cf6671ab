"""Multiplies by the reciprocal where that is a normal number, divides elsewhere."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        m = wide.abs().mean(1, keepdim=True)
        r = 1 / m
        tiny = torch.finfo(m.dtype).tiny
        fast = r.isfinite() & (r >= tiny) & (m >= tiny)
        return torch.where(fast, wide * r, wide / m).to(x.dtype)
