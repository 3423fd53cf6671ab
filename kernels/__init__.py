"""The fused L1 norm: kernels by target, and the build that compiles them at their first use."""
