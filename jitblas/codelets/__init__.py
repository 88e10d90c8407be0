"""Codelets: straight-line code of small Fourier transforms, generated when a kernel is specialised.

:mod:`~jitblas.codelets.expressions` holds what is computed, :mod:`~jitblas.codelets.transform` the transforms as such
expressions, in an order that needs few registers, :mod:`~jitblas.codelets.printer` their Ascend C.
"""
