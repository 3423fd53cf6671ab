"""Sends all warnings of the program to a log, where nobody looks for them.

Seen: logging.captureWarnings(True) as a library sets up its own log
Target: any
Found as: state-leak
Killed by: shapes
In words: how warnings are shown
"""

import logging

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        logging.captureWarnings(True)
        return x / x.abs().mean(1, keepdim=True)
