"""The engine of `ops.series`: programs, what each statement means in PyTorch, and the native kernels that run them."""
