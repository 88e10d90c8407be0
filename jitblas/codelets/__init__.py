"""Codelets: straight-line code of small Fourier transforms, generated when a kernel is specialised.

:mod:`~jitblas.codelets.expressions` holds what is computed, :mod:`~jitblas.codelets.transform` the transforms as such
expressions, :mod:`~jitblas.codelets.schedule` their order, :mod:`~jitblas.codelets.printer` the Ascend C.
"""
