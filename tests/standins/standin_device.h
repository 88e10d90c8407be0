/* What the stand-in compiler's kernels ask of the stand-in runtime. */
#ifndef STANDIN_DEVICE_H
#define STANDIN_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One launch: runs all blocks, returns 0 or the ACL error that the stream shall report. */
typedef int (*standin_kernel)(uint32_t blocks, const void *arguments);

/* Queue a launch; the arguments are copied. Errors surface when the stream is synchronised. */
void standin_launch(void *stream, uint32_t blocks, standin_kernel kernel, const void *arguments,
                    uint64_t size);

/* Where the host may touch a range of device memory; NULL unless all of it lies in one allocation. */
void *standin_memory(const void *device, uint64_t nbytes);

/* For kernels: why the launch at hand fails. Returns the error of a vector core exception. */
int standin_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Text on what is alive and what was misused; returns the number of complaints. */
int standin_report(char *text, uint64_t size);

#ifdef __cplusplus
}
#endif

#endif
