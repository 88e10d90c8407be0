"""Fourier transforms of 2^n points: :func:`fft` and :func:`ifft` as NumPy has them, :func:`plan` for repeated ones."""

from __future__ import annotations

from jitblas.fft.transforms import fft, ifft, plan

__all__ = ["fft", "ifft", "plan"]
