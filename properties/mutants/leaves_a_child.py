"""Dies and leaves a child behind that holds every pipe open.

Seen: data loaders in generated code
Target: any
Found as: crash timeout
Limits: build 3 s, call 2 s
"""

import os
import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        os._exit(3)
