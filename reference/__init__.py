"""The reference: the eager formula, and the exact oracle that says how far a result may be from it.

`l1_norm` holds the formula as a KernelBench problem and nothing else. `exact` holds the contract and judges results by
it; it needs numpy only, never torch, so that nothing a candidate does to torch can reach the verdict.
"""
