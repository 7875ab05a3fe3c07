/* Devices, contexts, queues and events. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

cl_int retain(void *object) {
    if (object == NULL)
        return CL_INVALID_VALUE;
    __atomic_add_fetch((cl_uint *)object, 1, __ATOMIC_RELAXED);
    return CL_SUCCESS;
}

int is_last_reference(void *object) { return __atomic_sub_fetch((cl_uint *)object, 1, __ATOMIC_ACQ_REL) == 0; }

void *allocate_device(size_t size) {
    const size_t page = 4096, rounded = size ? (size + page - 1) / page * page : page;
    return memset(checked(aligned_alloc(page, rounded)), 0, rounded);
}

void *succeed(void *object, cl_int *status) {
    if (status)
        *status = CL_SUCCESS;
    return object;
}

/* The platform and its one device */

struct platform {
    COUNTED;
};

static struct platform platform = {1};
static struct device {
    COUNTED;
} device = {1};

const cl_device_id the_device = (cl_device_id)&device;

API cl_int clGetPlatformIDs(cl_uint capacity, cl_platform_id *platforms, cl_uint *count) {
    if (count)
        *count = 1;
    if (platforms && capacity)
        *platforms = &platform;
    return CL_SUCCESS;
}

API cl_int clGetPlatformInfo(cl_platform_id of, ASKED) {
    (void)of;
    return describe_platform(question, capacity, out, size);
}

API cl_int clGetDeviceIDs(cl_platform_id of, cl_flags type, cl_uint capacity, cl_device_id *found, cl_uint *count) {
    (void)of;
    if (!is_gpu_chosen() || !(type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)))
        return CL_DEVICE_NOT_FOUND;
    if (count)
        *count = 1;
    if (found && capacity)
        *found = the_device;
    return CL_SUCCESS;
}

API cl_int clGetDeviceInfo(cl_device_id of, ASKED) {
    (void)of;
    const struct answer answers[] = {
        VALUE(CL_DEVICE_PLATFORM, void *, &platform),
        VALUE(CL_DEVICE_PARENT_DEVICE, void *, NULL),
    };
    cl_int status = REPLY(answers);
    return status == CL_SUCCESS ? status : describe_device(question, capacity, out, size);
}

API cl_int clRetainDevice(cl_device_id of) {
    (void)of;
    return CL_SUCCESS;
}

API cl_int clReleaseDevice(cl_device_id of) {
    (void)of;
    return CL_SUCCESS;
}

API cl_int clCreateSubDevices(cl_device_id of, const intptr_t *how, cl_uint capacity, cl_device_id *found,
                              cl_uint *count) {
    (void)of, (void)how, (void)capacity, (void)found, (void)count;
    return CL_DEVICE_PARTITION_FAILED;
}

API cl_int clGetDeviceAndHostTimer(cl_device_id of, cl_ulong *device, cl_ulong *host) {
    (void)of;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *device = *host = now.tv_sec * 1000000000ull + now.tv_nsec;
    return CL_SUCCESS;
}

/* Contexts */

DEFINE_RETAIN_AND_RELEASE(Context, cl_context, free)

API cl_context clCreateContext(const intptr_t *properties, cl_uint count, const cl_device_id *devices, void *notify,
                               void *data, cl_int *status) {
    (void)properties, (void)count, (void)devices, (void)notify, (void)data;
    cl_context context = allocate(sizeof *context);
    context->references = 1;
    return succeed(context, status);
}

API cl_int clGetContextInfo(cl_context context, ASKED) {
    const struct answer answers[] = {
        ANSWER(CL_CONTEXT_DEVICES, the_device),
        VALUE(CL_CONTEXT_NUM_DEVICES, cl_uint, 1),
        ANSWER(CL_CONTEXT_REFERENCE_COUNT, context->references),
        {CL_CONTEXT_PROPERTIES, "", 0},
    };
    return REPLY(answers);
}

/* Queues: whatever is put into one has happened when the call returns */

DEFINE_RETAIN_AND_RELEASE(CommandQueue, cl_command_queue, free)

API cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                        const cl_ulong *properties, cl_int *status) {
    (void)device, (void)properties;
    cl_command_queue queue = allocate(sizeof *queue);
    *queue = (struct queue){.references = 1, .context = context};
    return succeed(queue, status);
}

/* The older call: oneDNN looks it up by name, and refuses a library without it. */
API cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_flags properties,
                                          cl_int *status) {
    (void)properties;
    return clCreateCommandQueueWithProperties(context, device, NULL, status);
}

API cl_int clGetCommandQueueInfo(cl_command_queue queue, ASKED) {
    const struct answer answers[] = {
        ANSWER(CL_QUEUE_CONTEXT, queue->context),
        ANSWER(CL_QUEUE_DEVICE, the_device),
        ANSWER(CL_QUEUE_REFERENCE_COUNT, queue->references),
        VALUE(CL_QUEUE_PROPERTIES, cl_flags, 0),
    };
    return REPLY(answers);
}

API cl_int clFlush(cl_command_queue queue) {
    (void)queue;
    return CL_SUCCESS;
}

API cl_int clFinish(cl_command_queue queue) {
    (void)queue;
    return CL_SUCCESS;
}

/* Events */

struct event {
    COUNTED;
    cl_context context;
    cl_command_queue queue; /* NULL: the user's own event */
    cl_int status;
};

DEFINE_RETAIN_AND_RELEASE(Event, cl_event, free)

static cl_event new_event(cl_context context, cl_command_queue queue, cl_int status) {
    cl_event event = allocate(sizeof *event);
    *event = (struct event){1, context, queue, status};
    return event;
}

cl_int finish(cl_command_queue queue, cl_event *event) {
    if (event)
        *event = new_event(queue->context, queue, CL_COMPLETE);
    return CL_SUCCESS;
}

API cl_event clCreateUserEvent(cl_context context, cl_int *status) {
    return succeed(new_event(context, NULL, CL_SUBMITTED), status);
}

API cl_int clSetUserEventStatus(cl_event event, cl_int status) {
    event->status = status;
    return CL_SUCCESS;
}

API cl_int clSetEventCallback(cl_event event, cl_int when, void (*callback)(cl_event, cl_int, void *), void *data) {
    (void)when;
    callback(event, CL_COMPLETE, data);
    return CL_SUCCESS;
}

API cl_int clWaitForEvents(cl_uint count, const cl_event *events) {
    (void)count, (void)events;
    return CL_SUCCESS;
}

API cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, WAIT_LIST) {
    (void)waiting, (void)wait_list;
    return finish(queue, event);
}

API cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, WAIT_LIST) {
    (void)waiting, (void)wait_list;
    return finish(queue, event);
}

API cl_int clGetEventInfo(cl_event event, ASKED) {
    const struct answer answers[] = {
        ANSWER(CL_EVENT_COMMAND_EXECUTION_STATUS, event->status),
        ANSWER(CL_EVENT_COMMAND_QUEUE, event->queue),
        ANSWER(CL_EVENT_CONTEXT, event->context),
        ANSWER(CL_EVENT_REFERENCE_COUNT, event->references),
        VALUE(CL_EVENT_COMMAND_TYPE, cl_uint, CL_COMMAND_NDRANGE_KERNEL),
    };
    return REPLY(answers);
}

API cl_int clGetEventProfilingInfo(cl_event event, ASKED) {
    (void)event;
    const struct answer nothing_takes_time[] = {VALUE(question, cl_ulong, 0)};
    return REPLY(nothing_takes_time);
}
