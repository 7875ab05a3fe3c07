/* What the files of the virtual GPU share: objects with reference counts, and answers to questions. */
#pragma once

#include "opencl.h"

#define API __attribute__((visibility("default"))) /* all else stays within the library */

/* An answer is a value in memory; every clGet…Info looks its question up in a table of them. */
struct answer {
    cl_question question;
    const void *value;
    size_t size;
};

#define ANSWER(question, variable) {question, &(variable), sizeof(variable)}
#define VALUE(question, type, value) {question, &(const type){value}, sizeof(type)}
#define TEXT(question, text) {question, text, sizeof(text)}
#define STRING(question, string) {question, string, strlen(string) + 1}

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define REPLY(answers) reply(answers, LENGTH(answers), question, capacity, out, size)

/* The parameters after the question in every clGet…Info. */
#define ASKED cl_question question, size_t capacity, void *out, size_t *size

cl_int reply(const struct answer *answers, size_t count, ASKED);

/* A program's text becomes a file of the folder OVLPT_PROGRAMS, where one is named. */
void keep_text(cl_uint count, const char **sources, const size_t *lengths);

/* Of the device that OVLPT_VIRTUAL_GPU names, as far as `device.c` knows; CL_INVALID_VALUE for other questions. */
int is_gpu_chosen(void);
cl_int describe_platform(ASKED);
cl_int describe_device(ASKED);

/* Every object that is counted begins with its count. */
#define COUNTED cl_uint references

cl_int retain(void *object);
int is_last_reference(void *object); /* releases one reference */

#define DEFINE_RETAIN_AND_RELEASE(Name, type, destroy)                                                                 \
    API cl_int clRetain##Name(type object) { return retain(object); }                                                  \
    API cl_int clRelease##Name(type object) {                                                                          \
        if (object == NULL)                                                                                            \
            return CL_INVALID_VALUE;                                                                                   \
        if (is_last_reference(object))                                                                                 \
            destroy(object);                                                                                           \
        return CL_SUCCESS;                                                                                             \
    }

void *checked(void *bytes);         /* never NULL */
void *allocate(size_t size);        /* zeros; never NULL */
void *allocate_device(size_t size); /* the same, aligned as device memory is */
void *succeed(void *object, cl_int *status);

struct context {
    COUNTED;
};

struct queue {
    COUNTED;
    cl_context context;
};

struct memory {
    COUNTED;
    cl_context context;
    cl_mem parent; /* of a sub-buffer, which owns no bytes */
    cl_flags flags;
    char *bytes;
    size_t size;
    cl_image_format format;
    cl_image_desc image; /* width 0: a buffer */
};

extern const cl_device_id the_device;

/* The commands of a queue end as soon as they are given; an event says so. */
#define WAIT_LIST cl_uint waiting, const cl_event *wait_list, cl_event *event
cl_int finish(cl_command_queue queue, cl_event *event);
