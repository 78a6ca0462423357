//===- Report.h - Every message of the driver, in one form ------*- C++ -*-===//
//
// Errors come from the language, the manifest, MLIR and the driver itself. They all
// look alike:
//
//   file:line:column: error: message
//     source line
//     ^
//   file:line:column: note: message
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TOOLS_STEPC_REPORT_H
#define STEPC_TOOLS_STEPC_REPORT_H

#include "frontends/language/Diagnostics.h"
#include "frontends/manifest/InputError.h"

#include "mlir/IR/Diagnostics.h"

#include <map>
#include <mutex>
#include <optional>

namespace stepc::driver {

class Report {
public:
  /// The text of a file, kept to quote from; after an error nothing. `what` names it: "a
  /// specification".
  std::optional<llvm::StringRef> read(const std::string &path, llvm::StringRef what);

  /// "stepc: error: message", for what has no place in a file.
  void error(const llvm::Twine &message);
  /// The same with a name in front: "file: error: message".
  void error(llvm::StringRef file, const llvm::Twine &message);
  void hint(const llvm::Twine &message);
  /// "stepc: note: message".
  void note(const llvm::Twine &message);
  /// What was found wrong is stepc's own fault: says so, and what to do.
  void internalError(const llvm::Twine &message);
  void errors(const manifest::ErrorList &list);
  void diagnostics(const lang::Diagnostics &list, const lang::Source &source);

  /// Prints the context's diagnostics as long as the returned object lives.
  std::unique_ptr<mlir::ScopedDiagnosticHandler> attach(mlir::MLIRContext &context);

  bool hasErrors() const { return errorCount != 0; }
  bool hasRemarks() const { return remarkCount != 0; }
  /// An error past level decided that is the input's all the same (comm::blameInput).
  bool hasInputErrors() const { return inputErrorCount != 0; }
  /// An error of a pass in what the command line forces (decide::blameOptions).
  bool hasUsageErrors() const { return usageErrorCount != 0; }
  /// A tool that a pass calls is missing or too old (kernels::kToolErrorMark).
  bool hasToolErrors() const { return toolErrorCount != 0; }

private:
  void print(mlir::Diagnostic &diagnostic);
  void header(mlir::Location location, mlir::DiagnosticSeverity severity,
              const std::string &message, bool withExcerpt);
  /// The line and a caret below its column, if the file is known.
  void excerpt(llvm::StringRef file, unsigned line, unsigned column);

  std::map<std::string, std::string> texts;
  unsigned errorCount = 0, remarkCount = 0, inputErrorCount = 0, usageErrorCount = 0,
           toolErrorCount = 0;
  std::mutex mutex; // passes may run on several threads
};

} // namespace stepc::driver

#endif
