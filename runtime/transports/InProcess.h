//===- InProcess.h - Ranks that are threads of one process -------*- C++ -*-===//
//
// For tests, sanitizers and `stepc run`. A receiver copies out of the sender's buffer. A message is done when
// both sides have started it and the receiver has called `test`.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_TRANSPORTS_INPROCESS_H
#define STEPC_RUNTIME_TRANSPORTS_INPROCESS_H

#include "stepc/transport.h"

namespace stepc::runtime {

/// Fills `size` transports of one world. Transports lie as many bytes apart as struct_size of the first says.
/// Each may be used by one thread at a time. `destroy` gives its rank back, and the last one destroys the
/// world. May throw std::bad_alloc.
void inProcessWorld(int32_t size, stepc_transport *transports);

} // namespace stepc::runtime

#endif
