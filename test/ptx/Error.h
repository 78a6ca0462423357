//===- Error.h - What a kernel did wrong -------------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_ERROR_H
#define STEPC_TEST_PTX_ERROR_H

#include <sstream>
#include <stdexcept>

namespace stepc::ptx {

/// An error: a kernel did something that a GPU forbids, or that the machine does not model.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws an error whose message is all parts in a row.
template <class... Parts> [[noreturn]] void fail(const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(text.str());
}

} // namespace stepc::ptx

#endif
