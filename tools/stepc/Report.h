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

#include "frontends/language/Language.h"
#include "frontends/manifest/InputError.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

#include <map>
#include <mutex>
#include <optional>

namespace stepc::driver {

// The most bytes that are read of each input. What people write is far smaller. An input that never ends, as
// a device, becomes an error.
inline constexpr uint64_t kMostSpecification = lang::Source::maxBytes;
inline constexpr uint64_t kMostManifest = uint64_t(256) << 20; ///< 10,000 parameters of 25 KB each
inline constexpr uint64_t kMostModule = uint64_t(512) << 20;   ///< the IR of a level
inline constexpr uint64_t kMostTable = uint64_t(64) << 20;     ///< clusters, products and samples

/// The name of an input in messages: "<stdin>" for "-".
std::string inputName(const std::string &path);

class Report {
public:
  /// Reads a file, or standard input for "-", and keeps the text, so that errors can quote it. `what` names
  /// the text, as "a specification". Returns nothing after an error. More than `mostBytes` is an error.
  std::optional<llvm::StringRef> read(const std::string &path, llvm::StringRef what,
                                      uint64_t mostBytes);

  /// Finds a file that a specification imports, and keeps its text. The error says only why it cannot be
  /// read: "no such file or directory".
  llvm::Expected<lang::FoundFile> readImport(llvm::StringRef path);

  /// "stepc: error: message", for what has no place in a file.
  void error(const llvm::Twine &message);
  /// "file: error: message".
  void error(llvm::StringRef file, const llvm::Twine &message);
  /// Prints an error of frontends/text/Files.h with its file, and any other error without a file.
  void error(llvm::Error error);
  void hint(const llvm::Twine &message);
  /// "stepc: note: message".
  void note(const llvm::Twine &message);
  /// Prints an error that is stepc's own fault, and a hint that says so.
  void internalError(const llvm::Twine &message);
  void errors(const manifest::ErrorList &list);
  void diagnostics(const lang::Diagnostics &list, const lang::Source &source);

  /// Prints the context's diagnostics as long as the returned object lives.
  std::unique_ptr<mlir::ScopedDiagnosticHandler> attach(mlir::MLIRContext &context);

  bool hasErrors() const { return errorCount != 0; }
  bool hasRemarks() const { return remarkCount != 0; }
  /// Whether an error past level decided is the input's nevertheless (comm::blameInput).
  bool hasInputErrors() const { return inputErrorCount != 0; }
  /// Whether a pass found an error in what the command line forces (decide::blameOptions).
  bool hasUsageErrors() const { return usageErrorCount != 0; }
  /// Whether a tool that a pass calls is missing or too old (kernels::kToolErrorMark).
  bool hasToolErrors() const { return toolErrorCount != 0; }

private:
  void print(mlir::Diagnostic &diagnostic);
  void header(mlir::Location location, mlir::DiagnosticSeverity severity,
              const std::string &message, bool withExcerpt);
  /// Prints a line of a file, and a caret below the column, if the file was read.
  void excerpt(llvm::StringRef file, unsigned line, unsigned column);

  std::map<std::string, std::string> texts;
  unsigned errorCount = 0, remarkCount = 0, inputErrorCount = 0, usageErrorCount = 0,
           toolErrorCount = 0;
  std::mutex mutex; // passes may run on several threads
};

} // namespace stepc::driver

#endif
