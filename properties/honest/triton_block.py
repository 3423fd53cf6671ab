"""Triton: a program a row, in blocks of 1024 columns, whatever the strides.

Target: cuda
Needs: triton
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["columns"])
def normalize(x, y, columns, pitch, step, BLOCK: tl.constexpr):  # noqa: N803 - triton's own way to write constants
    """Normalise row ``program_id``."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        j = start.to(tl.int64) + lanes
        value = tl.load(x + row * pitch + j * step, mask=j < columns, other=0.0)
        sums += tl.abs(value.to(tl.float32))
    mean = tl.math.div_rn(tl.sum(sums), columns.to(tl.float32))
    for start in range(0, columns, BLOCK):
        j = start.to(tl.int64) + lanes
        value = tl.load(x + row * pitch + j * step, mask=j < columns, other=0.0).to(tl.float32)
        tl.store(y + row * columns + j, tl.math.div_rn(value, mean), mask=j < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or x.dtype not in (torch.float32, torch.float16, torch.bfloat16) or x.dim() != 2 or x.is_neg():
            raise NotImplementedError("matrices of float32, float16 or bfloat16 on a GPU only")
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        if x.numel():
            with torch.cuda.device(x.device):
                normalize[(len(x),)](x, y, x.shape[1], *x.stride(), BLOCK=1024)
        return y
