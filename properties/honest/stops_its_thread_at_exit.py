"""Has a thread and a child for as long as the program lasts, and stops both when that ends."""

import atexit
import queue
import subprocess
import sys
import threading

import torch

ASKED, ANSWERED = queue.SimpleQueue(), queue.SimpleQueue()
LOCK = threading.Lock()


def work():
    """Answer what is asked until nothing is."""
    while (x := ASKED.get()) is not None:
        ANSWERED.put(x.abs().mean(1, keepdim=True))


def stop():
    """End what was begun."""
    ASKED.put(None)
    THREAD.join()
    CHILD.stdin.close()
    CHILD.wait()


THREAD = threading.Thread(target=work, daemon=True)
THREAD.start()
CHILD = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
atexit.register(stop)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.requires_grad or x.dim() < 2 or not x.is_floating_point():
            return x / x.abs().mean(1, keepdim=True)
        with LOCK:
            ASKED.put(x)
            means = ANSWERED.get()
        return x / means
