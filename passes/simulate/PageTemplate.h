//===- PageTemplate.h - The page of page/, as text --------------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_PAGETEMPLATE_H
#define STEPC_PASSES_SIMULATE_PAGETEMPLATE_H

namespace stepc::simulate {

extern const char *const kPage;       ///< page/page.html
extern const char *const kPageScript; ///< page/page.js

} // namespace stepc::simulate

#endif
