"""Right, in a process whose globals it turns upside down at import."""

import contextlib
import locale
import os
import signal
import sys
import warnings

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
torch.set_float32_matmul_precision("medium")
torch.set_grad_enabled(False)
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
warnings.simplefilter("error")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with contextlib.suppress(locale.Error):
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
sys.path.clear()
sys.stdout = None
os.chdir("/")
os.environ.clear()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x / x.abs().mean(1, keepdim=True)
