"""The CUDA kernel: device code without torch headers, the choice of kernel, a thin binding, and the operator."""
