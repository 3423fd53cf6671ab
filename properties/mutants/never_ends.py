"""Has a thread that waits for work for as long as it gets some, and is no daemon: the program that called never ends.

Seen: https://github.com/pytorch/pytorch/pull/2524
Target: cpu
Found as: state-leak
Killed by: end
In words: it goes on for
"""

import queue
import threading

import torch

ASKED, ANSWERED = queue.SimpleQueue(), queue.SimpleQueue()


def work():
    """Answer what is asked, for ever."""
    while True:
        x = ASKED.get()
        ANSWERED.put(x.abs().mean(1, keepdim=True))


class ModelNew(torch.nn.Module):
    thread = None

    def forward(self, x):
        if ModelNew.thread is None:
            ModelNew.thread = threading.Thread(target=work)
            ModelNew.thread.start()
        ASKED.put(x.detach())
        return x / ANSWERED.get()
