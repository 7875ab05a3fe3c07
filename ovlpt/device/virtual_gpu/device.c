/* What the platform and its one device answer: a table of devices and a table of answers.
 *
 * The environment variable OVLPT_VIRTUAL_GPU names the device, once for a process. Its numbers follow public
 * descriptions of such devices; what decides is the architecture and whether it computes int8 by DP4A or by XMX. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

#define INTEL 0x8086
#define GIB (1ull << 30)
#define ATOMIC_LOAD_STORE (CL_GLOBAL_FP_ATOMIC_LOAD_STORE | CL_LOCAL_FP_ATOMIC_LOAD_STORE)

struct gpu {
    char key[8], name[64];
    cl_uint ip_version, id;
    cl_uint slices, subslices, units, threads; /* subslices per slice, units per subslice, threads per unit */
    cl_flags features;
    cl_bool shares_host_memory;
    size_t subgroups[3], work_group;
    cl_ulong local_memory;
};

enum { NO_INT8 = 0, DP4A = CL_FEATURE_DP4A_INTEL, XMX = CL_FEATURE_DP4A_INTEL | CL_FEATURE_DPAS_INTEL };
enum { OWN, SHARED };

#define IP(architecture, release, revision) ((architecture) << 24 | (release) << 16 | (revision))
#define NARROW {8, 16, 32}
#define WIDE {16, 16, 32}
#define KIB *1024

/* clang-format off */
static struct gpu devices[] = {
    /* key and name, architecture, PCI id, slices, subslices, units, threads, int8, memory, subgroups, group, local */
    {"gen9", "Virtual UHD 620",     IP(2, 0x40, 0x9),    0x5917, 1, 3,  8, 7, NO_INT8, SHARED, NARROW,  256,  64 KIB},
    {"xelp", "Virtual Iris Xe",     IP(3, 0x00, 0x0),    0x9A49, 1, 6, 16, 7, DP4A,    SHARED, NARROW,  512,  64 KIB},
    {"dg2",  "Virtual Arc A770",    IP(3, 0x0D, 0xC008), 0x56A0, 8, 4, 16, 8, XMX,     OWN,    NARROW, 1024,  64 KIB},
    {"mtl",  "Virtual Meteor Lake", IP(3, 0x11, 0x8004), 0x7D55, 1, 8, 16, 8, DP4A,    SHARED, NARROW, 1024,  64 KIB},
    {"arl",  "Virtual Arc 140T",    IP(3, 0x12, 0x8004), 0x7D51, 1, 8, 16, 8, XMX,     SHARED, NARROW, 1024,  64 KIB},
    {"lnl",  "Virtual Arc 140V",    IP(5, 0x01, 0x4),    0x64A0, 2, 4,  8, 8, XMX,     SHARED, WIDE,   1024, 128 KIB},
    {"bmg",  "Virtual Arc B580",    IP(5, 0x00, 0x4004), 0xE20B, 5, 4,  8, 8, XMX,     OWN,    WIDE,   1024, 128 KIB},
    {"ptl",  "Virtual Arc B390",    IP(7, 0x80, 0x4),    0xB080, 2, 6,  8, 8, XMX,     SHARED, WIDE,   1024, 128 KIB},
    {"nvl",  "Virtual Nova Lake",   IP(8, 0xC2, 0x8000), 0xD750, 2, 6,  8, 10, XMX,     SHARED, WIDE,   1024, 128 KIB},
};
/* clang-format on */

#define EXTENSIONS                                                                                                     \
    "cl_khr_fp16 cl_khr_fp64 cl_khr_byte_addressable_store cl_khr_global_int32_base_atomics "                          \
    "cl_khr_global_int32_extended_atomics cl_khr_local_int32_base_atomics cl_khr_local_int32_extended_atomics "        \
    "cl_khr_icd cl_khr_il_program cl_khr_subgroups cl_intel_subgroups cl_intel_subgroups_char "                        \
    "cl_intel_subgroups_short cl_intel_subgroups_long cl_intel_subgroup_local_block_io "                               \
    "cl_intel_required_subgroup_size cl_intel_unified_shared_memory cl_intel_device_attribute_query "
#define MATRIX_EXTENSIONS                                                                                              \
    EXTENSIONS "cl_intel_subgroup_matrix_multiply_accumulate cl_intel_subgroup_split_matrix_multiply_accumulate "

static const struct gpu *chosen(void) {
    const char *key = getenv("OVLPT_VIRTUAL_GPU");
    for (size_t i = 0; key && i < LENGTH(devices); i++)
        if (strcmp(key, devices[i].key) == 0)
            return &devices[i];
    return NULL;
}

int is_gpu_chosen(void) { return chosen() != NULL; }

cl_int describe_platform(ASKED) {
    static const struct answer answers[] = {
        TEXT(CL_PLATFORM_PROFILE, "FULL_PROFILE"),        TEXT(CL_PLATFORM_VERSION, "OpenCL 3.0 "),
        TEXT(CL_PLATFORM_VENDOR, "Intel(R) Corporation"), TEXT(CL_PLATFORM_NAME, "Intel(R) OpenCL Graphics"),
        TEXT(CL_PLATFORM_EXTENSIONS, EXTENSIONS),
    };
    return REPLY(answers);
}

/* The same for every device. */
static const struct answer common_answers[] = {
    VALUE(CL_DEVICE_TYPE, cl_flags, CL_DEVICE_TYPE_GPU),
    VALUE(CL_DEVICE_VENDOR_ID, cl_uint, INTEL),
    TEXT(CL_DEVICE_VENDOR, "Intel(R) Corporation"),
    TEXT(CL_DEVICE_VERSION, "OpenCL 3.0 NEO "),
    TEXT(CL_DEVICE_OPENCL_C_VERSION, "OpenCL C 1.2 "),
    TEXT(CL_DEVICE_PROFILE, "FULL_PROFILE"),
    TEXT(CL_DRIVER_VERSION, "25.18.33578"),
    VALUE(CL_DEVICE_PARTITION_MAX_SUB_DEVICES, cl_uint, 0),
    VALUE(CL_DEVICE_REFERENCE_COUNT, cl_uint, 1),
    VALUE(CL_DEVICE_AVAILABLE, cl_bool, 1),
    VALUE(CL_DEVICE_COMPILER_AVAILABLE, cl_bool, 1),
    VALUE(CL_DEVICE_LINKER_AVAILABLE, cl_bool, 1),
    VALUE(CL_DEVICE_IMAGE_SUPPORT, cl_bool, 1),
    VALUE(CL_DEVICE_IMAGE2D_MAX_WIDTH, size_t, 16384),
    VALUE(CL_DEVICE_IMAGE2D_MAX_HEIGHT, size_t, 16384),
    VALUE(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, cl_bool, 1),
    VALUE(CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, cl_bool, 1),
    VALUE(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, cl_uint, 3),
    VALUE(CL_DEVICE_MAX_PARAMETER_SIZE, size_t, 2048),
    VALUE(CL_DEVICE_MAX_CLOCK_FREQUENCY, cl_uint, 1300),
    VALUE(CL_DEVICE_PROFILING_TIMER_RESOLUTION, size_t, 52),
    VALUE(CL_DEVICE_ADDRESS_BITS, cl_uint, 64),
    VALUE(CL_DEVICE_MEM_BASE_ADDR_ALIGN, cl_uint, 1024),
    VALUE(CL_DEVICE_GLOBAL_MEM_SIZE, cl_ulong, 16 * GIB),
    VALUE(CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong, 4 * GIB),
    VALUE(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, cl_ulong, 4 << 20),
    VALUE(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, cl_uint, 64),
    VALUE(CL_DEVICE_QUEUE_PROPERTIES, cl_flags, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE),
    VALUE(CL_DEVICE_HALF_FP_CONFIG, cl_flags, CL_FP_ALL),
    VALUE(CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES, cl_flags, ATOMIC_LOAD_STORE),
    VALUE(CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES, cl_flags, ATOMIC_LOAD_STORE),
    VALUE(CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES, cl_flags, ATOMIC_LOAD_STORE),
    VALUE(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, cl_flags, CL_UNIFIED_SHARED_MEMORY_ALL_INTEL),
    VALUE(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL, cl_flags, CL_UNIFIED_SHARED_MEMORY_ALL_INTEL),
    VALUE(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, cl_flags, CL_UNIFIED_SHARED_MEMORY_ALL_INTEL),
    VALUE(CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, cl_flags, CL_UNIFIED_SHARED_MEMORY_ALL_INTEL),
    VALUE(CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL, cl_flags, CL_UNIFIED_SHARED_MEMORY_ALL_INTEL),
};

cl_int describe_device(ASKED) {
    const struct gpu *gpu = chosen();
    const char *extensions = gpu->features == XMX ? MATRIX_EXTENSIONS : EXTENSIONS;
    const struct answer answers[] = {
        STRING(CL_DEVICE_NAME, gpu->name),
        STRING(CL_DEVICE_EXTENSIONS, extensions),
        ANSWER(CL_DEVICE_IP_VERSION_INTEL, gpu->ip_version),
        ANSWER(CL_DEVICE_ID_INTEL, gpu->id),
        ANSWER(CL_DEVICE_NUM_SLICES_INTEL, gpu->slices),
        ANSWER(CL_DEVICE_NUM_SUB_SLICES_PER_SLICE_INTEL, gpu->subslices),
        ANSWER(CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL, gpu->units),
        ANSWER(CL_DEVICE_NUM_THREADS_PER_EU_INTEL, gpu->threads),
        VALUE(CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint, gpu->slices * gpu->subslices * gpu->units),
        ANSWER(CL_DEVICE_FEATURE_CAPABILITIES_INTEL, gpu->features),
        ANSWER(CL_DEVICE_HOST_UNIFIED_MEMORY, gpu->shares_host_memory),
        ANSWER(CL_DEVICE_SUB_GROUP_SIZES_INTEL, gpu->subgroups),
        ANSWER(CL_DEVICE_MAX_WORK_GROUP_SIZE, gpu->work_group),
        {CL_DEVICE_MAX_WORK_ITEM_SIZES, (const size_t[3]){gpu->work_group, gpu->work_group, gpu->work_group},
         3 * sizeof(size_t)},
        ANSWER(CL_DEVICE_LOCAL_MEM_SIZE, gpu->local_memory),
    };
    cl_int status = REPLY(answers);
    return status == CL_SUCCESS ? status : REPLY(common_answers);
}
