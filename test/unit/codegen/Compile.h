//===- Compile.h - Text of level 4 to a loaded library ----------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_CODEGEN_COMPILE_H
#define STEPC_TEST_UNIT_CODEGEN_COMPILE_H

#include "passes/codegen/Codegen.h"
#include "stepc/sized.h"

#include <functional>
#include <string>
#include <vector>

namespace stepc::test {

/// Where compilation starts again from printed text, to show that nothing is lost in it.
enum class Restart { None, Kernels, Llvm };

struct CompileRequest {
  std::string text;
  std::string target = "";
  Restart restart = Restart::None;
  codegen::Sanitizer sanitizer = codegen::Sanitizer::None;
  void (*registerMore)(mlir::DialectRegistry &registry) = nullptr;
  bool isQuick = false; ///< unoptimized code: the same bits in less time
};

/// What came out; `library` is null and `error` set when something failed.
struct Compiled {
  std::string error;
  std::string path, header, json, entry;
  std::vector<stepc::codegen::Program> programs; // one
  const stepc_library *library = nullptr;
};

/// A path that is gone after the tests.
std::string temporaryFile(const std::string &name);
/// The file under inputs/.
std::string input(const std::string &name);
/// `text` with every `from` replaced.
std::string replaced(std::string text, const std::string &from, const std::string &to);

/// Normally distributed, equal for equal seeds.
std::vector<float> randomFloats(size_t count, unsigned seed);

/// Down to object code, or an error.
Compiled compile(const CompileRequest &request);
/// The same, linked.
Compiled link(const CompileRequest &request);
/// The same, linked and loaded.
Compiled load(const CompileRequest &request);

/// One rank with the memory that it borrows, as bytes per parameter and state.
struct Rank {
  const stepc_library *library;
  stepc_instance *instance;
  std::vector<std::vector<char>> parameters, gradients;
  std::vector<std::vector<std::vector<char>>> states; // by parameter
  std::vector<int64_t> steps;

  /// Allocates what the rank holds (`byteSize` of names like "f32"), zero, and binds it.
  void allocate();
  void step();
  template <typename T> T *parameter(int64_t p) {
    return reinterpret_cast<T *>(parameters[p].data());
  }
  template <typename T> T *gradient(int64_t p) {
    return reinterpret_cast<T *>(gradients[p].data());
  }
  template <typename T> T *state(int64_t p, int s) {
    return reinterpret_cast<T *>(states[p][s].data());
  }
};

/// Runs `body` on every rank of the library's world, each in a thread of its own; `change` sees the
/// transports before they are used.
void runWorld(const stepc_library *library, const std::function<void(Rank &, int)> &body,
              int threads = 1, const std::function<void(stepc_transport &)> &change = {});

} // namespace stepc::test

#endif
