"""Uses in its calls what programs use, and leaves nothing behind: threads, an event loop, a child, timers, a profiler.

Its first call traces, exports and times; later ones pass through what they made.
"""

import asyncio
import contextlib
import cProfile
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import timeit
import uuid
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch


class L1Norm(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = None

    def forward(self, x):
        if self.model is None:
            self.model = self.made(x)
        with ThreadPoolExecutor(1) as pool, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pool.submit(self.model, x).result()

    def made(self, x):
        """One of several that are all right, chosen as a program may that looks for the fastest."""
        ways = [L1Norm(), torch.fx.symbolic_trace(L1Norm()), torch.jit.script(L1Norm())]
        random.Random(str(uuid.uuid4())).shuffle(ways)
        ways.sort(key=lambda way: timeit.timeit(lambda: way(x), number=2))
        asyncio.run(asyncio.sleep(0))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), cProfile.Profile():
            subprocess.run([sys.executable, "-c", ""], check=True, env={**os.environ, "ANEW": "1"})
        np.random.default_rng(1).random()
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGINT, before)
        with torch.random.fork_rng(), torch.autograd.set_detect_anomaly(True):
            torch.rand(3)
        gc.collect()
        return ways[0]
