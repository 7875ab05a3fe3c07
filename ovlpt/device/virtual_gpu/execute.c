/* The GPU's own kernels, executed: OpenCL's entries are handed on to Intel's OpenCL runtime for CPUs, which is told of
 * as the chosen GPU.
 *
 * What stands between the two:
 *   answers     the device is that of `device.c`
 *   launches    a GPU lays subgroups along the linear number of a work item, the runtime along the first dimension. So
 *               each launch has one dimension, and its real sizes travel in the work offset, which the plugin leaves
 *               unused; what is put before each program computes the three dimensions from it.
 *   programs    built ones are kept in a folder, since building takes nearly all the time
 *   memory      has room before its start and after its end, which kernels read
 *   oneDNN      learns that the driver takes no machine code, and makes OpenCL programs instead
 *
 * Environment: OVLPT_OPENCL_RUNTIME, the runtime's library; OVLPT_KERNELS, the folder of built programs, optional. */
#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Handed on as they are */

/* clang-format off */
#define HANDED_ON(X)                                                                                                   \
    X(clCloneKernel) X(clCompileProgram) X(clCreateBufferWithProperties) X(clCreateCommandQueue)    \
    X(clCreateCommandQueueWithProperties) X(clCreateContext) X(clCreateContextFromType) X(clCreateImage)              \
    X(clCreateImage2D) X(clCreateImage3D) X(clCreateImageWithProperties) X(clCreatePipe)                              \
    X(clCreateProgramWithBuiltInKernels) X(clCreateProgramWithIL) X(clCreateSampler)                                  \
    X(clCreateSamplerWithProperties) X(clCreateSubBuffer) X(clCreateSubDevices) X(clCreateUserEvent)                  \
    X(clEnqueueBarrier) X(clEnqueueBarrierWithWaitList) X(clEnqueueCopyBuffer) X(clEnqueueCopyBufferRect)             \
    X(clEnqueueCopyBufferToImage) X(clEnqueueCopyImage) X(clEnqueueCopyImageToBuffer) X(clEnqueueFillBuffer)          \
    X(clEnqueueFillImage) X(clEnqueueMapBuffer) X(clEnqueueMapImage) X(clEnqueueMarker)                               \
    X(clEnqueueMarkerWithWaitList) X(clEnqueueMigrateMemObjects) X(clEnqueueNativeKernel) X(clEnqueueReadBuffer)      \
    X(clEnqueueReadBufferRect) X(clEnqueueReadImage) X(clEnqueueSVMFree) X(clEnqueueSVMMap) X(clEnqueueSVMMemFill)    \
    X(clEnqueueSVMMemcpy) X(clEnqueueSVMMigrateMem) X(clEnqueueSVMUnmap) X(clEnqueueTask)                             \
    X(clEnqueueUnmapMemObject) X(clEnqueueWaitForEvents) X(clEnqueueWriteBuffer) X(clEnqueueWriteBufferRect)          \
    X(clEnqueueWriteImage) X(clFinish) X(clFlush) X(clGetCommandQueueInfo) X(clGetContextInfo)                        \
    X(clGetDeviceAndHostTimer) X(clGetEventInfo) X(clGetEventProfilingInfo) X(clGetExtensionFunctionAddress)          \
    X(clGetHostTimer) X(clGetImageInfo) X(clGetKernelArgInfo)             \
    X(clGetKernelSubGroupInfo) X(clGetKernelWorkGroupInfo) X(clGetMemObjectInfo)                   \
    X(clGetPipeInfo) X(clGetPlatformIDs) X(clGetSamplerInfo) X(clGetSupportedImageFormats) X(clLinkProgram)           \
    X(clReleaseCommandQueue) X(clReleaseContext) X(clReleaseDevice) X(clReleaseEvent) X(clReleaseKernel)              \
    X(clReleaseMemObject) X(clReleaseSampler) X(clRetainCommandQueue) X(clRetainContext) X(clRetainDevice)            \
    X(clRetainEvent) X(clRetainKernel) X(clRetainMemObject) X(clRetainSampler) X(clSVMAlloc) X(clSVMFree)             \
    X(clSetContextDestructorCallback) X(clSetDefaultDeviceCommandQueue) X(clSetEventCallback) X(clSetKernelArg)       \
    X(clSetKernelArgSVMPointer) X(clSetKernelExecInfo) X(clSetMemObjectDestructorCallback)                            \
    X(clSetProgramReleaseCallback) X(clSetProgramSpecializationConstant) X(clSetUserEventStatus)                      \
    X(clUnloadCompiler) X(clUnloadPlatformCompiler) X(clWaitForEvents)
/* clang-format on */

#define HAND_ON(name)                                                                                                  \
    __attribute__((used)) void *real_##name;                                                                           \
    __asm__(".globl " #name "\n.type " #name ", @function\n" #name ":\n\tjmp *real_" #name "(%rip)\n");
HANDED_ON(HAND_ON)

/* Answered here, with the runtime's help */

typedef cl_int info(const void *of, ASKED);
typedef void built(cl_program program, void *data);
#define BUILT_WITH cl_uint count, const cl_device_id *devices, const char *options, built *notify, void *data

static struct {
    info *clGetPlatformInfo, *clGetDeviceInfo, *clGetProgramInfo, *clGetKernelInfo;
    cl_int (*clGetDeviceIDs)(cl_platform_id, cl_flags, cl_uint, cl_device_id *, cl_uint *);
    cl_int (*clGetProgramBuildInfo)(cl_program, cl_device_id, ASKED);
    cl_program (*clCreateProgramWithSource)(cl_context, cl_uint, const char **, const size_t *, cl_int *);
    cl_program (*clCreateProgramWithBinary)(cl_context, cl_uint, const cl_device_id *, const size_t *,
                                            const unsigned char **, cl_int *, cl_int *);
    cl_int (*clBuildProgram)(cl_program, BUILT_WITH);
    cl_kernel (*clCreateKernel)(cl_program, const char *, cl_int *);
    cl_int (*clCreateKernelsInProgram)(cl_program, cl_uint, cl_kernel *, cl_uint *);
    cl_int (*clEnqueueNDRangeKernel)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                                     const size_t *, WAIT_LIST);
    cl_mem (*clCreateBuffer)(cl_context, cl_flags, size_t, void *, cl_int *);
    void *(*clGetExtensionFunctionAddressForPlatform)(cl_platform_id, const char *);
} runtime;

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("virtual GPU: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static void missing(void) {
    fail("the OpenCL runtime for CPUs lacks a function that the GPU plugin calls");
    abort();
}

__attribute__((constructor)) static void open_runtime(void) {
    const char *path = getenv("OVLPT_OPENCL_RUNTIME");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fail("%s", path ? dlerror() : "no OpenCL runtime for CPUs is named");
        return; /* no platform, so no device */
    }
    void *found;
#define FIND(name) real_##name = (found = dlsym(library, #name)) ? found : (void *)missing;
    HANDED_ON(FIND)
#define TAKE(name) *(void **)&runtime.name = (found = dlsym(library, #name)) ? found : (void *)missing
    TAKE(clGetPlatformInfo), TAKE(clGetDeviceInfo), TAKE(clGetProgramInfo), TAKE(clGetKernelInfo);
    TAKE(clGetDeviceIDs), TAKE(clGetProgramBuildInfo), TAKE(clCreateProgramWithSource), TAKE(clCreateProgramWithBinary);
    TAKE(clBuildProgram), TAKE(clCreateKernel), TAKE(clCreateKernelsInProgram), TAKE(clEnqueueNDRangeKernel);
    TAKE(clCreateBuffer), TAKE(clGetExtensionFunctionAddressForPlatform);
}

/* Platform and device */

API cl_int clGetPlatformInfo(cl_platform_id platform, ASKED) {
    cl_int status = describe_platform(question, capacity, out, size);
    return status == CL_SUCCESS ? status : runtime.clGetPlatformInfo(platform, question, capacity, out, size);
}

API cl_int clGetDeviceIDs(cl_platform_id platform, cl_flags type, cl_uint capacity, cl_device_id *found,
                          cl_uint *count) {
    if (!is_gpu_chosen() || !(type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)))
        return CL_DEVICE_NOT_FOUND;
    return runtime.clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, capacity, found, count);
}

API cl_int clGetDeviceInfo(cl_device_id device, ASKED) {
    cl_int status = describe_device(question, capacity, out, size);
    return status == CL_SUCCESS ? status : runtime.clGetDeviceInfo(device, question, capacity, out, size);
}

/* Memory */

/* Work items that have no output of their own read after the end of a tensor, and those of a padded layer before its start;
 * both drop what they read. A GPU gives memory in large pages, where that reads something; a page of the CPU may be the
 * last one. */
enum { AFTER_END = 64 << 10, BEFORE_START = 64 << 10 };

API cl_mem clCreateBuffer(cl_context context, cl_flags flags, size_t size, void *host, cl_int *status) {
    if (flags & CL_MEM_USE_HOST_PTR)
        return runtime.clCreateBuffer(context, flags, size, host, status);
    void *content = flags & CL_MEM_COPY_HOST_PTR && host ? memcpy(allocate(size + AFTER_END), host, size) : host;
    cl_mem memory = runtime.clCreateBuffer(context, flags, size + AFTER_END, content, status);
    if (content != host)
        free(content);
    return memory;
}

typedef void *shared_by_both(cl_context context, const cl_ulong *properties, size_t size, cl_uint alignment,
                             cl_int *status);
typedef void *shared_by_one(cl_context context, cl_device_id device, const cl_ulong *properties, size_t size,
                            cl_uint alignment, cl_int *status);

static shared_by_both *real_clHostMemAllocINTEL;
static shared_by_one *real_clDeviceMemAllocINTEL, *real_clSharedMemAllocINTEL;
static cl_int (*real_clMemFreeINTEL)(cl_context, char *), (*real_clMemBlockingFreeINTEL)(cl_context, char *);
static cl_int (*real_clGetMemAllocInfoINTEL)(cl_context, const char *, ASKED);

/* Of memory with room on both sides, what is given to the plugin. */
static void *within(char *memory) { return memory ? memory + BEFORE_START : NULL; }

static void *clHostMemAllocINTEL(cl_context context, const cl_ulong *properties, size_t size, cl_uint alignment,
                                 cl_int *status) {
    return within(real_clHostMemAllocINTEL(context, properties, BEFORE_START + size + AFTER_END, alignment, status));
}

static void *clDeviceMemAllocINTEL(cl_context context, cl_device_id device, const cl_ulong *properties, size_t size,
                                   cl_uint alignment, cl_int *status) {
    size += BEFORE_START + AFTER_END;
    return within(real_clDeviceMemAllocINTEL(context, device, properties, size, alignment, status));
}

static void *clSharedMemAllocINTEL(cl_context context, cl_device_id device, const cl_ulong *properties, size_t size,
                                   cl_uint alignment, cl_int *status) {
    size += BEFORE_START + AFTER_END;
    return within(real_clSharedMemAllocINTEL(context, device, properties, size, alignment, status));
}

static cl_int clMemFreeINTEL(cl_context context, char *memory) {
    return real_clMemFreeINTEL(context, memory ? memory - BEFORE_START : NULL);
}

static cl_int clMemBlockingFreeINTEL(cl_context context, char *memory) {
    return real_clMemBlockingFreeINTEL(context, memory ? memory - BEFORE_START : NULL);
}

static cl_int clGetMemAllocInfoINTEL(cl_context context, const char *pointer, ASKED) {
    const cl_int status = real_clGetMemAllocInfoINTEL(context, pointer, question, capacity, out, size);
    if (status == CL_SUCCESS && question == CL_MEM_ALLOC_BASE_PTR_INTEL && out && *(char **)out)
        *(char **)out += BEFORE_START;
    return status;
}

API void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name) {
    void *found = runtime.clGetExtensionFunctionAddressForPlatform(platform, name);
#define WITH_ROOM(function)                                                                                            \
    if (found && strcmp(name, #function) == 0) {                                                                       \
        *(void **)&real_##function = found;                                                                            \
        return (void *)function;                                                                                       \
    }
    WITH_ROOM(clHostMemAllocINTEL)
    WITH_ROOM(clDeviceMemAllocINTEL)
    WITH_ROOM(clSharedMemAllocINTEL)
    WITH_ROOM(clMemFreeINTEL)
    WITH_ROOM(clMemBlockingFreeINTEL)
    WITH_ROOM(clGetMemAllocInfoINTEL)
    return found;
}

/* Programs */

/* Before each program: the three dimensions of a launch from its one, and what the CPU's compiler is stricter about. Loops
 * that the plugin wants unrolled stay loops, or building takes three times as long; the attribute stands there with an
 * argument or without, which an unknown one after it takes. The last: a transposition reads what other work items wrote to
 * local memory, without a barrier, since a GPU takes all items of its group in one step. */
static const char before[] =
    "#pragma clang diagnostic ignored \"-Wincompatible-pointer-types\"\n"
    "#pragma clang diagnostic ignored \"-Wimplicit-function-declaration\"\n"
    "#pragma clang diagnostic ignored \"-Wimplicit-int\"\n"
    "#pragma clang diagnostic ignored \"-Wint-conversion\"\n"
    "#pragma clang diagnostic ignored \"-Wunknown-attributes\"\n"
    "#define opencl_unroll_hint opencl_unroll_hint(1), ovlpt_ignored\n"
    "static inline size_t ovlpt_global(uint axis) { return axis < 3 ? get_global_offset(axis) & 0xFFFFFFFFul : 1; }\n"
    "static inline size_t ovlpt_local(uint axis) { return axis < 3 ? get_global_offset(axis) >> 32 : 1; }\n"
    "static inline size_t ovlpt_groups(uint axis) { return ovlpt_global(axis) / ovlpt_local(axis); }\n"
    "static inline size_t ovlpt_part(size_t number, size_t x, size_t y, uint axis) {\n"
    "    return axis == 0 ? number % x : axis == 1 ? number / x % y : axis == 2 ? number / (x * y) : 0;\n"
    "}\n"
    "static inline size_t ovlpt_local_id(uint axis) {\n"
    "    return ovlpt_part(get_local_id(0), ovlpt_local(0), ovlpt_local(1), axis);\n"
    "}\n"
    "static inline size_t ovlpt_group_id(uint axis) {\n"
    "    return ovlpt_part(get_group_id(0), ovlpt_groups(0), ovlpt_groups(1), axis);\n"
    "}\n"
    "static inline size_t ovlpt_global_id(uint axis) {\n"
    "    return ovlpt_group_id(axis) * ovlpt_local(axis) + ovlpt_local_id(axis);\n"
    "}\n"
    "static inline size_t ovlpt_linear_id(void) {\n"
    "    return (ovlpt_global_id(2) * ovlpt_global(1) + ovlpt_global_id(1)) * ovlpt_global(0) + ovlpt_global_id(0);\n"
    "}\n"
    "static inline size_t ovlpt_local_linear_id(void) { return get_local_id(0); }\n"
    "static inline size_t ovlpt_no_offset(uint axis) { return 0; }\n"
    "#define get_global_size ovlpt_global\n"
    "#define get_local_size ovlpt_local\n"
    "#define get_enqueued_local_size ovlpt_local\n"
    "#define get_num_groups ovlpt_groups\n"
    "#define get_local_id ovlpt_local_id\n"
    "#define get_group_id ovlpt_group_id\n"
    "#define get_global_id ovlpt_global_id\n"
    "#define get_global_linear_id ovlpt_linear_id\n"
    "#define get_local_linear_id ovlpt_local_linear_id\n"
    "#define get_global_offset ovlpt_no_offset\n"
    "#define reqd_work_group_size(x, y, z)\n"
    "#define OVLPT_READ(place) READ_VEC((barrier(CLK_LOCAL_MEM_FENCE), 0), &place)\n";

/* A program with a source. The runtime cannot turn one into another that was built before: that is `built` beside it. */
struct sourced {
    struct sourced *next;
    cl_program program, built;
    cl_context context;
    unsigned long long key[2]; /* of the source */
    cl_bool stands_in;         /* for machine code */
};

static struct sourced *sourced_programs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct sourced *sourced(cl_program program) {
    pthread_mutex_lock(&lock);
    struct sourced *at = sourced_programs;
    while (at && at->program != program)
        at = at->next;
    pthread_mutex_unlock(&lock);
    return at;
}

static cl_program built_form(cl_program program) {
    const struct sourced *found = sourced(program);
    return found && found->built ? found->built : program;
}

/* FNV-1a, twice, from two starts. */
static void add_to_key(unsigned long long key[2], const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        for (int half = 0; half < 2; half++)
            key[half] = (key[half] ^ (unsigned char)bytes[i]) * 0x100000001B3ull;
}

static size_t count_of(const char *part, const char *text) {
    size_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* The text with each `part` as `other`, in its place. */
static char *replace(char *text, const char *part, const char *other) {
    char *whole = allocate(strlen(text) + count_of(part, text) * strlen(other) + 1), *end = whole;
    const char *from = text;
    for (const char *at; (at = strstr(from, part)); from = at + strlen(part)) {
        end = mempcpy(end, from, at - from);
        end = stpcpy(end, other);
    }
    strcpy(end, from);
    free(text);
    return whole;
}

/* A barrier where `before` says; and signed places of what a subgroup reads, since those before a tensor's start would be
 * 4 GB after it. A work item that a branch leaves out still has the numbers that others of its group ask for on a GPU, which
 * has an array of two in registers; from the memory of a CPU it would not have read them. */
static char *adapted(const char *source, size_t size) {
    char *text = allocate(size + 1);
    memcpy(text, source, size);
    text[size] = 0;
    text = replace(text, "READ_VEC(0, &transpose_buf", "OVLPT_READ(transpose_buf");
    text = replace(text, "_sub_group_shuffle(w[id], ", "_sub_group_shuffle(id ? w[1] : w[0], ");
    text = replace(text, "*)(ptr)+(offset))", "*)(ptr)+(int)(offset))");
    return replace(text, "*)(ptr) + (offset))", "*)(ptr) + (int)(offset))");
}

API cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **sources, const size_t *lengths,
                                         cl_int *status) {
    char *texts[count + 1];
    size_t sizes[count + 1];
    struct sourced *new = allocate(sizeof *new);
    *new = (struct sourced){.context = context, .key = {0xCBF29CE484222325ull, 0x6C62272E07BB0142ull}};
    texts[0] = (char *)before, sizes[0] = sizeof before - 1;
    for (cl_uint i = 0; i < count; i++) {
        texts[i + 1] = adapted(sources[i], lengths && lengths[i] ? lengths[i] : strlen(sources[i]));
        sizes[i + 1] = strlen(texts[i + 1]);
    }
    for (cl_uint i = 0; i <= count; i++)
        add_to_key(new->key, texts[i], sizes[i]);
    keep_text(count, sources, lengths);
    new->program = runtime.clCreateProgramWithSource(context, count + 1, (const char **)texts, sizes, status);
    for (cl_uint i = 1; i <= count; i++)
        free(texts[i]);
    pthread_mutex_lock(&lock);
    new->next = sourced_programs;
    sourced_programs = new;
    pthread_mutex_unlock(&lock);
    return new->program;
}

/* Where the built form of a program is kept; NULL: nowhere. The caller frees it. */
static char *kept_at(const struct sourced *program, const char *options) {
    const char *folder = getenv("OVLPT_KERNELS");
    unsigned long long key[2] = {program->key[0], program->key[1]};
    char *path = NULL;
    if (options)
        add_to_key(key, options, strlen(options));
    return folder && asprintf(&path, "%s/%016llx%016llx", folder, key[0], key[1]) > 0 ? path : NULL;
}

static unsigned char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    const long end = ftell(file);
    rewind(file);
    *size = end > 0 ? end : 0;
    unsigned char *bytes = allocate(*size + 1);
    if (fread(bytes, 1, *size, file) != *size)
        *size = 0;
    fclose(file);
    return bytes;
}

static cl_program built_before(const struct sourced *program, const char *path, BUILT_WITH) {
    (void)notify, (void)data;
    size_t size = 0;
    unsigned char *bytes = read_file(path, &size);
    cl_int status = CL_INVALID_VALUE;
    cl_program found = NULL;
    if (size)
        found = runtime.clCreateProgramWithBinary(program->context, 1, devices, &size, (const unsigned char **)&bytes, NULL,
                                                  &status);
    if (status == CL_SUCCESS)
        status = runtime.clBuildProgram(found, count, devices, options, NULL, NULL);
    free(bytes);
    return status == CL_SUCCESS ? found : NULL;
}

/* Whole or not at all, whoever else keeps it now. */
static void keep(cl_program program, const char *path) {
    size_t size = 0;
    char *aside = NULL;
    if (runtime.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS || !size)
        return;
    unsigned char *bytes = allocate(size);
    const cl_int status = runtime.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL);
    FILE *file = NULL;
    if (status == CL_SUCCESS && asprintf(&aside, "%s.%d.%p", path, getpid(), (void *)program) > 0)
        file = fopen(aside, "wb");
    if (file) {
        const size_t written = fwrite(bytes, 1, size, file);
        if (fclose(file) != 0 || written != size || rename(aside, path) != 0)
            unlink(aside);
    }
    free(aside);
    free(bytes);
}

static void tell_why(cl_program program, cl_device_id device) {
    char log[4096] = "";
    size_t size = 0;
    runtime.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *whole = allocate(size + 1);
    runtime.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, whole, NULL);
    const char *error = strstr(whole, "error:");
    snprintf(log, sizeof log, "%.*s", (int)strcspn(error ? error : whole, "\n"), error ? error : whole);
    fail("the CPU's compiler refuses a kernel: %s", log);
    free(whole);
}

API cl_int clBuildProgram(cl_program program, BUILT_WITH) {
    struct sourced *found = sourced(program);
    char *path = found && count && devices ? kept_at(found, options) : NULL;
    cl_int status = CL_SUCCESS;
    if (path == NULL || !(found->built = built_before(found, path, count, devices, options, NULL, NULL))) {
        status = runtime.clBuildProgram(program, count, devices, options, NULL, NULL);
        if (status == CL_SUCCESS && path)
            keep(program, path);
        else if (status != CL_SUCCESS && count && devices)
            tell_why(program, devices[0]);
    }
    free(path);
    if (notify)
        notify(program, data);
    return status;
}

API cl_int clGetProgramInfo(cl_program program, ASKED) {
    return runtime.clGetProgramInfo(built_form(program), question, capacity, out, size);
}

API cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, ASKED) {
    return runtime.clGetProgramBuildInfo(built_form(program), device, question, capacity, out, size);
}

/* oneDNN makes machine code of a trial, and asks what arguments it takes; without an answer it runs its own OpenCL
 * programs (`binary_kernels:disabled`). To refuse the code itself would be an error that it does not expect. */
static const char stand_in[] = "ovlpt_machine_code", stand_in_text[] = "kernel void ovlpt_machine_code() {}\n";

static int is_code_of_a_gpu(const unsigned char *bytes, size_t size) {
    enum { MACHINE = 18, INTEL_GRAPHICS = 205 }; /* of an ELF header */
    return size > MACHINE + 1 && memcmp(bytes, "\177ELF", 4) == 0 && bytes[MACHINE] == INTEL_GRAPHICS && !bytes[MACHINE + 1];
}

API cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id *devices,
                                         const size_t *lengths, const unsigned char **binaries, cl_int *each,
                                         cl_int *status) {
    if (!is_code_of_a_gpu(binaries[0], lengths[0]))
        return runtime.clCreateProgramWithBinary(context, count, devices, lengths, binaries, each, status);
    const char *text = stand_in_text;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, status);
    sourced(program)->stands_in = 1;
    if (each)
        *each = CL_SUCCESS;
    return program;
}

API cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *status) {
    const struct sourced *found = sourced(program);
    return runtime.clCreateKernel(built_form(program), found && found->stands_in ? stand_in : name, status);
}

API cl_int clGetKernelInfo(cl_kernel kernel, ASKED) {
    char name[sizeof stand_in + 1] = "";
    runtime.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    if (question == CL_KERNEL_NUM_ARGS && strcmp(name, stand_in) == 0)
        return CL_INVALID_VALUE;
    return runtime.clGetKernelInfo(kernel, question, capacity, out, size);
}

API cl_int clCreateKernelsInProgram(cl_program program, cl_uint capacity, cl_kernel *kernels, cl_uint *count) {
    return runtime.clCreateKernelsInProgram(built_form(program), capacity, kernels, count);
}

/* The runtime forgets a program whose kernels still live, and then refuses to retain it. */
API cl_int clRetainProgram(cl_program program) {
    (void)program;
    return CL_SUCCESS;
}

API cl_int clReleaseProgram(cl_program program) {
    (void)program;
    return CL_SUCCESS;
}

/* Launches */

enum { DIMENSIONS = 3, MOST_ITEMS = 64 };

API cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                                  const size_t *items, const size_t *group, WAIT_LIST) {
    (void)offset;
    size_t sizes[DIMENSIONS], all = 1, together = 1;
    for (cl_uint axis = 0; axis < DIMENSIONS; axis++) {
        const size_t global = axis < dimensions ? items[axis] : 1;
        size_t local = group && axis < dimensions ? group[axis] : 1;
        if (group == NULL && axis == 0)
            for (local = MOST_ITEMS; global % local;)
                local--;
        if (local == 0 || global % local) {
            fail("%zu work items are no whole number of groups of %zu", global, local);
            return CL_INVALID_WORK_GROUP_SIZE;
        }
        sizes[axis] = global | local << 32;
        all *= global, together *= local;
    }
    const size_t row[DIMENSIONS] = {all, 1, 1}, row_group[DIMENSIONS] = {together, 1, 1};
    return runtime.clEnqueueNDRangeKernel(queue, kernel, DIMENSIONS, sizes, row, row_group, waiting, wait_list, event);
}
