"""Prepares the logging of the whole program.

Seen: programs that were a script once
Target: any
Found as: state-leak
Killed by: shapes
In words: how many handlers
"""

import logging

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        logging.basicConfig()
        return x / x.abs().mean(1, keepdim=True)
