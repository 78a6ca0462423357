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

/// All that one command reads, and the context that its IR lives in.
class Input {
public:
  Input();
  /// Notes where remarks were asked for and none was made: a misspelt name would stay silent.
  ~Input();

  Report report;
  mlir::MLIRContext &context() { return *mlirContext; }

  /// False after errors, which were printed.
  bool loadSpecification(const std::string &path, bool requireRoute);
  bool loadManifest(const std::string &path);
  /// Level 1 from the loaded files; null after an error, and then `exitCode` says of what kind.
  mlir::OwningOpRef<mlir::ModuleOp> import(const CompileOptions &options);
  /// Lets patterns of the module's routes match nothing; false, after an error, if none of
  /// the routes has such a pattern.
  bool allowNoMatch(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns);
  /// Remarks whose name or category (the pass) matches become diagnostics. False if `pattern` is no
  /// valid regular expression.
  bool enableRemarks(llvm::StringRef pattern);
  /// Specification and manifest, or any level's text, whichever `options.input` names.
  /// Null after an error; `exitCode` then says of what kind.
  mlir::OwningOpRef<mlir::ModuleOp> load(const CompileOptions &options, int &exitCode);

  Specification spec;
  std::optional<manifest::Manifest> manifest;

private:
  std::string remarks; ///< what was enabled
  std::set<std::string>
      remarkNames; ///< of all remarks that passes made since, with their categories
  mlir::OwningOpRef<mlir::ModuleOp> parseModule(const std::string &path);
  /// Puts what `--cluster` names in the manifest's place; false after an error.
  bool overrideCluster(const std::string &text);
  /// Gives a module at level optim the cluster of the options or, if it has no cluster, the target's.
  bool setCluster(mlir::ModuleOp module, const CompileOptions &options);
  std::string manifestPath;
  llvm::StringRef manifestText;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
};

/// The files that a command which compiles reads.
std::vector<NamedFile> inputsOf(const CompileOptions &options);
/// True, after an error, where a specification and a manifest stand in each other's place, or both
/// are standard input.
bool refuseInputs(Report &report, const std::string &spec, const std::string &manifest);

/// True for a file that holds IR, by its name's end.
bool isModulePath(llvm::StringRef path);
/// True, after an error, for such a file where a specification must stand.
bool refuseModule(Report &report, llvm::StringRef path);

} // namespace stepc::driver

#endif
