"""Measuring: our kernels next to other libraries' on the same arrays, and the limits that the machine sets."""
