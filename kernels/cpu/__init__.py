"""The fused kernel for CPU tensors."""
