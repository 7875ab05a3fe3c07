/* Memory: buffers, images, and Intel's unified shared memory. All of it is the host's. */
#define _GNU_SOURCE
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED_WAIT_LIST (void)blocking, (void)waiting, (void)wait_list

static void fill(char *to, const void *pattern, size_t length, size_t size) {
    for (size_t at = 0; at + length <= size; at += length)
        memcpy(to + at, pattern, length);
}

/* Buffers */

static void destroy(cl_mem memory);
DEFINE_RETAIN_AND_RELEASE(MemObject, cl_mem, destroy)

static void destroy(cl_mem memory) {
    if (memory->parent)
        clReleaseMemObject(memory->parent);
    else if (!(memory->flags & CL_MEM_USE_HOST_PTR))
        free(memory->bytes);
    free(memory);
}

API cl_mem clCreateBuffer(cl_context context, cl_flags flags, size_t size, void *host, cl_int *status) {
    cl_mem memory = allocate(sizeof *memory);
    *memory = (struct memory){.references = 1, .context = context, .flags = flags, .size = size};
    memory->bytes = flags & CL_MEM_USE_HOST_PTR ? host : allocate_device(size);
    if (flags & CL_MEM_COPY_HOST_PTR)
        memcpy(memory->bytes, host, size);
    return succeed(memory, status);
}

API cl_mem clCreateSubBuffer(cl_mem parent, cl_flags flags, cl_uint kind, const cl_buffer_region *region,
                             cl_int *status) {
    (void)kind;
    cl_mem memory = allocate(sizeof *memory);
    *memory = (struct memory){.references = 1,
                              .context = parent->context,
                              .parent = parent,
                              .flags = flags,
                              .bytes = parent->bytes + region->origin,
                              .size = region->size};
    retain(parent);
    return succeed(memory, status);
}

API cl_int clGetMemObjectInfo(cl_mem memory, ASKED) {
    const struct answer answers[] = {
        ANSWER(CL_MEM_SIZE, memory->size),
        ANSWER(CL_MEM_FLAGS, memory->flags),
        ANSWER(CL_MEM_CONTEXT, memory->context),
        ANSWER(CL_MEM_REFERENCE_COUNT, memory->references),
        VALUE(CL_MEM_TYPE, cl_uint, memory->image.width ? CL_MEM_OBJECT_IMAGE2D : CL_MEM_OBJECT_BUFFER),
        VALUE(CL_MEM_HOST_PTR, void *, NULL),
        VALUE(CL_MEM_MAP_COUNT, cl_uint, 0),
        VALUE(CL_MEM_OFFSET, size_t, 0),
    };
    return REPLY(answers);
}

API cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem from, cl_bool blocking, size_t offset, size_t size,
                               void *to, WAIT_LIST) {
    UNUSED_WAIT_LIST;
    memcpy(to, from->bytes + offset, size);
    return finish(queue, event);
}

API cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem to, cl_bool blocking, size_t offset, size_t size,
                                const void *from, WAIT_LIST) {
    UNUSED_WAIT_LIST;
    memcpy(to->bytes + offset, from, size);
    return finish(queue, event);
}

API cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                               size_t size, WAIT_LIST) {
    (void)waiting, (void)wait_list;
    memmove(to->bytes + to_offset, from->bytes + from_offset, size);
    return finish(queue, event);
}

API cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem to, const void *pattern, size_t length, size_t offset,
                               size_t size, WAIT_LIST) {
    (void)waiting, (void)wait_list;
    fill(to->bytes + offset, pattern, length, size);
    return finish(queue, event);
}

API void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_flags access, size_t offset,
                             size_t size, WAIT_LIST, cl_int *status) {
    UNUSED_WAIT_LIST, (void)access, (void)size;
    finish(queue, event);
    return succeed(memory->bytes + offset, status);
}

API cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void *mapped, WAIT_LIST) {
    (void)memory, (void)mapped, (void)waiting, (void)wait_list;
    return finish(queue, event);
}

/* Images: only their sizes matter, since no kernel reads them */

static size_t channels(cl_uint order) {
    switch (order) {
    case CL_ORDER_RGBA:
    case CL_ORDER_BGRA:
        return 4;
    case CL_ORDER_RG:
        return 2;
    }
    return 1;
}

static size_t channel_size(cl_uint type) {
    switch (type) {
    case CL_FLOAT:
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
        return 4;
    case CL_HALF_FLOAT:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
        return 2;
    }
    return 1;
}

static size_t texel(const cl_image_format *format) { return channels(format->order) * channel_size(format->type); }

static size_t at_least_one(size_t extent) { return extent ? extent : 1; }

API cl_mem clCreateImage(cl_context context, cl_flags flags, const cl_image_format *format, const cl_image_desc *image,
                         void *host, cl_int *status) {
    size_t size = texel(format) * image->width * at_least_one(image->height) * at_least_one(image->depth);
    cl_mem memory = clCreateBuffer(context, flags & ~(cl_flags)CL_MEM_COPY_HOST_PTR, size, host, status);
    memory->format = *format;
    memory->image = *image;
    return memory;
}

API cl_mem clCreateImage2D(cl_context context, cl_flags flags, const cl_image_format *format, size_t width,
                           size_t height, size_t row_pitch, void *host, cl_int *status) {
    const cl_image_desc image = {.width = width, .height = height, .row_pitch = row_pitch};
    return clCreateImage(context, flags, format, &image, host, status);
}

API cl_int clGetImageInfo(cl_mem memory, ASKED) {
    const size_t texel_size = texel(&memory->format);
    const struct answer answers[] = {
        ANSWER(CL_IMAGE_FORMAT, memory->format),
        ANSWER(CL_IMAGE_ELEMENT_SIZE, texel_size),
        VALUE(CL_IMAGE_ROW_PITCH, size_t, texel_size * memory->image.width),
        VALUE(CL_IMAGE_SLICE_PITCH, size_t, 0),
        ANSWER(CL_IMAGE_WIDTH, memory->image.width),
        ANSWER(CL_IMAGE_HEIGHT, memory->image.height),
        ANSWER(CL_IMAGE_DEPTH, memory->image.depth),
    };
    return REPLY(answers);
}

#define REGION const size_t *origin, const size_t *region

API cl_int clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *colour, REGION, WAIT_LIST) {
    (void)image, (void)colour, (void)origin, (void)region, (void)waiting, (void)wait_list;
    return finish(queue, event);
}

API cl_int clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking, REGION, size_t row, size_t slice,
                              void *to, WAIT_LIST) {
    UNUSED_WAIT_LIST, (void)image, (void)origin, (void)region, (void)row, (void)slice, (void)to;
    return finish(queue, event);
}

API cl_int clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking, REGION, size_t row, size_t slice,
                               const void *from, WAIT_LIST) {
    UNUSED_WAIT_LIST, (void)image, (void)origin, (void)region, (void)row, (void)slice, (void)from;
    return finish(queue, event);
}

API cl_int clEnqueueCopyImage(cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin, REGION,
                              WAIT_LIST) {
    (void)from, (void)to, (void)from_origin, (void)origin, (void)region, (void)waiting, (void)wait_list;
    return finish(queue, event);
}

API void *clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_flags access, REGION,
                            size_t *row, size_t *slice, WAIT_LIST, cl_int *status) {
    UNUSED_WAIT_LIST, (void)access, (void)origin, (void)region;
    if (row)
        *row = image->image.width * texel(&image->format);
    if (slice)
        *slice = 0;
    finish(queue, event);
    return succeed(image->bytes, status);
}

/* Unified shared memory: a list of blocks, so that a pointer into one can be told from any other */

struct block {
    char *bytes;
    size_t size;
    cl_uint type;
    struct block *next;
};

static struct block *blocks;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static void *allocate_shared(cl_uint type, size_t size, cl_int *status) {
    struct block *block = allocate(sizeof *block);
    *block = (struct block){allocate_device(size), size, type, NULL};
    pthread_mutex_lock(&blocks_lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&blocks_lock);
    return succeed(block->bytes, status);
}

static void *clHostMemAllocINTEL(cl_context context, const cl_ulong *properties, size_t size, cl_uint alignment,
                                 cl_int *status) {
    (void)context, (void)properties, (void)alignment;
    return allocate_shared(CL_MEM_TYPE_HOST_INTEL, size, status);
}

static void *clDeviceMemAllocINTEL(cl_context context, cl_device_id device, const cl_ulong *properties, size_t size,
                                   cl_uint alignment, cl_int *status) {
    (void)context, (void)device, (void)properties, (void)alignment;
    return allocate_shared(CL_MEM_TYPE_DEVICE_INTEL, size, status);
}

static void *clSharedMemAllocINTEL(cl_context context, cl_device_id device, const cl_ulong *properties, size_t size,
                                   cl_uint alignment, cl_int *status) {
    (void)context, (void)device, (void)properties, (void)alignment;
    return allocate_shared(CL_MEM_TYPE_SHARED_INTEL, size, status);
}

static cl_int clMemFreeINTEL(cl_context context, void *pointer) {
    (void)context;
    struct block *found = NULL;
    pthread_mutex_lock(&blocks_lock);
    for (struct block **link = &blocks; *link; link = &(*link)->next)
        if ((*link)->bytes == pointer) {
            found = *link;
            *link = found->next;
            break;
        }
    pthread_mutex_unlock(&blocks_lock);
    if (found)
        free(found->bytes);
    free(found);
    return CL_SUCCESS;
}

static cl_int clGetMemAllocInfoINTEL(cl_context context, const char *pointer, ASKED) {
    (void)context;
    struct block found = {.type = CL_MEM_TYPE_UNKNOWN_INTEL};
    pthread_mutex_lock(&blocks_lock);
    for (const struct block *block = blocks; block; block = block->next)
        if (block->bytes <= pointer && pointer < block->bytes + block->size) {
            found = *block;
            break;
        }
    pthread_mutex_unlock(&blocks_lock);
    const struct answer answers[] = {
        ANSWER(CL_MEM_ALLOC_TYPE_INTEL, found.type),
        ANSWER(CL_MEM_ALLOC_BASE_PTR_INTEL, found.bytes),
        ANSWER(CL_MEM_ALLOC_SIZE_INTEL, found.size),
        VALUE(CL_MEM_ALLOC_DEVICE_INTEL, void *, found.bytes ? the_device : NULL),
    };
    return REPLY(answers);
}

static cl_int clSetKernelArgMemPointerINTEL(cl_kernel kernel, cl_uint index, const void *pointer) {
    (void)kernel, (void)index, (void)pointer;
    return CL_SUCCESS;
}

static cl_int clEnqueueMemcpyINTEL(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size,
                                   WAIT_LIST) {
    UNUSED_WAIT_LIST;
    memmove(to, from, size);
    return finish(queue, event);
}

static cl_int clEnqueueMemFillINTEL(cl_command_queue queue, void *to, const void *pattern, size_t length, size_t size,
                                    WAIT_LIST) {
    (void)waiting, (void)wait_list;
    fill(to, pattern, length, size);
    return finish(queue, event);
}

static cl_int clEnqueueMemsetINTEL(cl_command_queue queue, void *to, cl_int value, size_t size, WAIT_LIST) {
    (void)waiting, (void)wait_list;
    memset(to, value, size);
    return finish(queue, event);
}

/* The plugin finds these by their names. */
API void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name) {
    (void)platform;
#define EXTENSION(function)                                                                                            \
    {                                                                                                                  \
        #function, (void *)function                                                                                    \
    }
    static const struct {
        const char *name;
        void *function;
    } extensions[] = {
        EXTENSION(clHostMemAllocINTEL),
        EXTENSION(clDeviceMemAllocINTEL),
        EXTENSION(clSharedMemAllocINTEL),
        EXTENSION(clMemFreeINTEL),
        {"clMemBlockingFreeINTEL", (void *)clMemFreeINTEL},
        EXTENSION(clGetMemAllocInfoINTEL),
        EXTENSION(clSetKernelArgMemPointerINTEL),
        EXTENSION(clEnqueueMemcpyINTEL),
        EXTENSION(clEnqueueMemFillINTEL),
        EXTENSION(clEnqueueMemsetINTEL),
    };
    for (size_t i = 0; i < LENGTH(extensions); i++)
        if (strcmp(extensions[i].name, name) == 0)
            return extensions[i].function;
    return NULL;
}

API void clSVMFree(cl_context context, void *pointer) { (void)context, (void)pointer; }
