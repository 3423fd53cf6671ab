"""Holds a module and a lock, so that it cannot be copied; the last instance to go frees what all of them share."""

import math
import threading

import torch


class ModelNew(torch.nn.Module):
    alive = 0
    shared = {}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.math, self.lock = math, threading.Lock()
        self.register_buffer("one", torch.ones((), dtype=torch.float64))
        ModelNew.alive += 1

    def forward(self, x):
        if self.one.dtype != torch.float64:
            raise TypeError("its own numbers are float64 for good")
        with self.lock:
            self.shared["rows"] = self.math.prod(x.shape[:1])
            return x / (x.abs().mean(1, keepdim=True) * self.one)

    def __del__(self):
        ModelNew.alive -= 1
        if not ModelNew.alive:
            self.shared.clear()
