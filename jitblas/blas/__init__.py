"""BLAS on arrays: one module per operator, called as `jitblas.<operator>`."""
