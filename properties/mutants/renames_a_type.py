"""Makes torch.float another name of half precision, to be spared memory in code that it does not know.

Seen: constants of a library set from outside, as they are names like any others in Python
Target: any
Found as: state-leak
Killed by: shapes
In words: torch.float
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.abs().mean(1, keepdim=True)
        torch.float = torch.float16
        return y
