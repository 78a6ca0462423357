//===- Import.h - A specification and a manifest as level 1 -----*- C++ -*-===//
//
// Turns the files that people write into the first level of the ladder: an
// analyzed .optim file and a checked manifest become one module at level "optim".
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_IMPORT_IMPORT_H
#define STEPC_FRONTENDS_IMPORT_IMPORT_H

#include "frontends/language/AST.h"
#include "frontends/manifest/Manifest.h"
#include "passes/cost/Profiles.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace stepc::frontends {

struct ImportOptions {
  std::string name; ///< The library's name, see libraryName.
  std::string numerics = "exact";
  /// The machines for which stepc plans. The manifest's figures, if it has any, replace these.
  cost::Cluster cluster = cost::cpuProfile();
};

/// The library name of a specification file: its stem. Names in C are made from it
/// (kernels::symbolPrefix).
std::string libraryName(llvm::StringRef path);

/// A manifest, and the JSON text that it was read from, which gives parameters and meshes their locations.
struct ManifestFile {
  const manifest::Manifest &manifest;
  llvm::StringRef path, text;
};

/// Builds the module: the cluster, meshes of stepped parameters, the model, rules, routes, block statements
/// and parameters, in that order. Look-ups of symbols then find the few before the many. Parameters that
/// require no gradient keep only their names.
///
/// A parameter gets its canonical name (wrappers' prefixes dropped), which the library uses, too. The
/// name as written becomes an alias if it differs. Trainers know routes by the names that the analysis
/// gave them (lang::Claim).
///
/// The file must have passed `lang::analyze` with `requireRoute`. Returns null
/// after an error, which was emitted to the context.
mlir::OwningOpRef<mlir::ModuleOp> importModule(mlir::MLIRContext &context, const lang::File &file,
                                               const ManifestFile &manifest,
                                               const ImportOptions &options);

/// The model and the rules of an analyzed file alone, as a module: to check and to look at them without a
/// manifest.
mlir::OwningOpRef<mlir::ModuleOp> importRules(mlir::MLIRContext &context, const lang::File &file,
                                              llvm::StringRef name);

} // namespace stepc::frontends

#endif
