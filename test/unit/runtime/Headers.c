/* The headers are C, and their layouts are what other languages were told. */
#include "stepc/kernel_abi.h"
#include "stepc/nccl.h"
#include "stepc/stepc.h"
#include <stddef.h>

_Static_assert(sizeof(stepc_chunk) == 18 * 8, "stepc_chunk");
_Static_assert(sizeof(stepc_parameter_record) == 8 * 8, "stepc_parameter_record");
_Static_assert(offsetof(stepc_parameter_record, hyperparameters) == 32, "hyperparameters");
_Static_assert(sizeof(stepc_operation) == 56, "stepc_operation");
_Static_assert(sizeof(stepc_operations) == 32, "stepc_operations");
_Static_assert(sizeof(stepc_traffic) == 32, "stepc_traffic");
_Static_assert(sizeof(stepc_transport) == 96, "stepc_transport");
_Static_assert(sizeof(stepc_nccl_id) == 128, "stepc_nccl_id");
/* Where every version has its own. */
_Static_assert(offsetof(stepc_transport, version) == 0, "version");
_Static_assert(offsetof(stepc_options, abi_version) == 0, "version");
_Static_assert(sizeof(stepc_options) == 88, "stepc_options");
_Static_assert(offsetof(stepc_options, timeout_seconds) == 80, "timeout_seconds is last");
_Static_assert(sizeof(stepc_parameter_info) == 104, "stepc_parameter_info");
_Static_assert(sizeof(stepc_state_info) == 72, "stepc_state_info");
_Static_assert(sizeof(stepc_mesh_info) == 72, "stepc_mesh_info");
_Static_assert(sizeof(stepc_counters) == 64, "stepc_counters");
_Static_assert(sizeof(stepc_run) == 24, "stepc_run");
_Static_assert(offsetof(stepc_library, abi_version) == 0, "version");
_Static_assert(offsetof(stepc_library, world_size) == 56, "world_size");
_Static_assert(offsetof(stepc_library, step) == 248, "step");
_Static_assert(sizeof(stepc_library) == 416, "stepc_library");
_Static_assert(sizeof(stepc_metric_info) == 40, "stepc_metric_info");

int stepc_headers_compile_as_c(void) { return STEPC_ABI_VERSION; }
