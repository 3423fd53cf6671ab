"""Seeds the random numbers of Python and numpy in every call: whoever draws next draws the same again.

Seen: functions that make a run reproducible, called from within
Target: any
Found as: state-leak
In words: numpy's random numbers
"""

import random

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        random.seed(0)
        np.random.seed(0)
        return x / x.abs().mean(1, keepdim=True)
