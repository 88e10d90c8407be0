"""What is below a launch: one module per device, all with the interface of :mod:`jitblas.runtime.protocol`."""
