//===- Input.h - Specifications, manifests and IR as modules ----*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_INPUT_H
#define STEPC_TOOLS_STEPC_INPUT_H

#include "frontends/language/Language.h"
#include "frontends/manifest/Manifest.h"
#include "tools/stepc/Files.h"
#include "tools/stepc/Options.h"
#include "tools/stepc/Report.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <set>

namespace stepc::driver {

/// A parsed and analyzed specification.
struct Specification {
  std::unique_ptr<lang::Source> source;
  std::unique_ptr<lang::File> file;
};

/// All that one command reads, and the context that owns its IR.
class Input {
public:
  Input();
  /// Prints a note if remarks were asked for and none was made, because the name may be misspelt.
  ~Input();

  Report report;
  mlir::MLIRContext &context() { return *mlirContext; }

  /// Both return false after errors, which were printed.
  bool loadSpecification(const std::string &path, bool requireRoute);
  bool loadManifest(const std::string &path);
  /// Makes the module at level optim from the loaded files. Null after an error, which was printed.
  mlir::OwningOpRef<mlir::ModuleOp> import(const CompileOptions &options);
  /// Lets these patterns of the module's routes and divisions match nothing. Returns false, after an error,
  /// if the module has no such pattern.
  bool allowNoMatch(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns);
  /// Prints remarks whose name or category (the pass) matches. Returns false, after an error, if `pattern` is
  /// no valid regular expression.
  bool enableRemarks(llvm::StringRef pattern);
  /// Loads what `options.input` names: a specification, with its manifest, or the text of any level. Null
  /// after an error; `exitCode` then says of what kind.
  mlir::OwningOpRef<mlir::ModuleOp> load(const CompileOptions &options, int &exitCode);

  Specification spec;
  std::optional<manifest::Manifest> manifest;

private:
  std::string remarks; ///< the pattern of enableRemarks
  /// Name and category of each remark that passes have made.
  std::set<std::string> remarkNames;
  mlir::OwningOpRef<mlir::ModuleOp> parseModule(const std::string &path);
  /// Replaces the manifest's cluster by what `--cluster` names. Returns false after an error.
  bool overrideCluster(const std::string &text);
  /// Gives a module at level optim the cluster of the options or, if it has no cluster, the target's profile.
  bool setCluster(mlir::ModuleOp module, const CompileOptions &options);
  std::string manifestPath;
  llvm::StringRef manifestText;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
};

/// The files that a command which compiles reads.
std::vector<NamedFile> inputsOf(const CompileOptions &options);
/// Returns true, after an error, if specification and manifest are swapped, or if both are standard input.
bool refuseInputs(Report &report, const std::string &spec, const std::string &manifest);

/// Whether a file holds IR, by the ending of its name.
bool isModulePath(llvm::StringRef path);
/// Returns true, after an error, if a file that must be a specification holds IR.
bool refuseModule(Report &report, llvm::StringRef path);

} // namespace stepc::driver

#endif
