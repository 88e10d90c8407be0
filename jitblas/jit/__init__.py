"""From a problem to a loaded kernel: specialisation, key, source, artifact, library.

specialize(problem) -> Specialization -> load(specialization) -> Kernel -> kernel.launch(blocks, stream, ...)
"""
