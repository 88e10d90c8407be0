// A kernel that no reference is written for: it can be compiled and launched, and fails.
static int Run(uint32_t, const void *) {
    return standin_fault("the stand-in has no reference for the kernel %s", STANDIN_KERNEL);
}

extern "C" __attribute__((visibility("default"))) int launch(uint32_t blocks, void *stream, ...) {
    standin_launch(stream, blocks, Run, "", 1);
    return 0;
}
