"""Fourier transforms on arrays."""
