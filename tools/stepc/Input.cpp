//===- Input.cpp - Specifications, manifests and IR as modules -------------===//

#include "tools/stepc/Input.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"
#include "frontends/import/Import.h"
#include "frontends/text/Text.h"
#include "passes/decide/ClusterOfModule.h"
#include "tools/stepc/ClusterOption.h"
#include "tools/stepc/KeptOwners.h"
#include "tools/stepc/Pipeline.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/SourceMgr.h"

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

bool driver::isModulePath(StringRef path) {
  return path.ends_with(".mlir") || path.ends_with(".mlirbc");
}

std::vector<NamedFile> driver::inputsOf(const CompileOptions &options) {
  return {{"stepc", options.input},
          {"--manifest", options.manifest},
          {"--cluster", options.cluster},
          {"--products", options.products}};
}

bool driver::refuseModule(Report &report, StringRef path) {
  if (!isModulePath(path))
    return false;
  report.error("expected a specification (.optim), found '" + path + "', the IR of a level");
  report.hint("`stepc compile " + path + "` checks it, and goes on from it");
  return true;
}

/// Whether a file begins as JSON does. A pipe, which can be read only once, is left alone.
static bool beginsAsJson(const std::string &path) {
  if (!llvm::sys::fs::is_regular_file(path))
    return false;
  auto slice = llvm::MemoryBuffer::getFileSlice(path, 4096, 0);
  return slice && text::withoutByteOrderMark((*slice)->getBuffer()).ltrim().starts_with("{");
}

bool driver::refuseInputs(Report &report, const std::string &spec, const std::string &manifest) {
  if (spec == "-" && manifest == "-") {
    report.error("expected one file that is standard input, found two");
    return true;
  }
  if (!beginsAsJson(spec))
    return false;
  if (manifest.empty()) {
    report.error("expected a specification (.optim), found '" + spec + "', which is JSON");
    report.hint("a manifest stands behind --manifest, and the specification first");
    return true;
  }
  if (!llvm::sys::fs::is_regular_file(manifest) || beginsAsJson(manifest))
    return false;
  report.error("expected a specification (.optim) and then --manifest with JSON, found '" + spec +
               "', which is JSON, and then '" + manifest + "', which is none");
  report.hint("they are swapped: write `" + manifest + " --manifest " + spec + "`");
  return true;
}

Input::Input() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlirContext = std::make_unique<mlir::MLIRContext>(registry);
  // Users should read the message, not the operation that a pass was working on.
  mlirContext->printOpOnDiagnostic(false);
  handler = report.attach(*mlirContext);
}

Input::~Input() {
  if (!remarks.empty() && !report.hasErrors() && !report.hasRemarks())
    report.note("no remark of the passes that ran has a name or category that '" + remarks +
                "' matches; there are " +
                (remarkNames.empty() ? "none" : llvm::join(remarkNames, ", ")));
}

bool Input::loadSpecification(const std::string &path, bool requireRoute) {
  std::optional<StringRef> text = report.read(path, "a specification", kMostSpecification);
  if (!text)
    return false;
  spec.source = std::make_unique<lang::Source>(inputName(path), text->str());
  lang::Diagnostics diagnostics;
  auto read = [&](StringRef path) { return report.readImport(path); };
  llvm::SmallString<128> identity;
  if (path == "-" || llvm::sys::fs::real_path(path, identity))
    identity.clear();
  spec.file = lang::load(*spec.source, read, diagnostics, identity);
  lang::AnalysisOptions options;
  options.requireRoute = requireRoute;
  bool good = lang::analyze(*spec.file, diagnostics, options);
  report.diagnostics(diagnostics, *spec.source);
  return good;
}

bool Input::loadManifest(const std::string &path) {
  std::optional<StringRef> text = report.read(path, "a manifest", kMostManifest);
  if (!text)
    return false;
  manifestPath = inputName(path);
  manifestText = *text;
  manifest::ErrorList errors;
  manifest = manifest::readManifest(*text, manifestPath, errors);
  report.errors(errors);
  return manifest.has_value();
}

bool Input::overrideCluster(const std::string &text) {
  std::optional<manifest::Cluster> given = readClusterOption(text, manifest->meshes, report);
  if (!given)
    return false;
  if (manifest->cluster)
    report.note("--cluster stands in the place of the manifest's cluster");
  manifest->cluster = std::move(given);
  return true;
}

/// Sets the limits that the user gives. If the user gives none, the module's limits stay.
static void setLimits(mlir::ModuleOp module, const CompileOptions &options) {
  mlir::Builder builder(module.getContext());
  if (options.workspaceLimit > 0)
    module->setAttr(comm::kLimitAttr, builder.getI64IntegerAttr(options.workspaceLimit));
  if (options.stateLimit > 0)
    module->setAttr(optim::kStateLimitAttr, builder.getI64IntegerAttr(options.stateLimit));
  if (options.maxPeers > 0)
    module->setAttr(optim::kMaxPeersAttr, builder.getI64IntegerAttr(options.maxPeers));
}

/// Returns what is wrong with a library's name, which names files and functions in C; empty if nothing is.
static std::string checkLibraryName(StringRef name) {
  if (name.empty() || name.contains('/'))
    return ("expected a name that can be a library's, found '" + text::printableName(name) + "'");
  return text::checkName(name, "a library's name");
}

mlir::OwningOpRef<mlir::ModuleOp> Input::import(const CompileOptions &options) {
  if (!options.cluster.empty() && !overrideCluster(options.cluster))
    return nullptr;
  frontends::ImportOptions import;
  import.name = options.input == "-" ? "stdin" : frontends::libraryName(options.input);
  if (std::string wrong = checkLibraryName(import.name); !wrong.empty()) {
    report.error(options.input, wrong);
    report.hint("the library has the file's name without its ending: muon.optim makes libmuon.so");
    return nullptr;
  }
  import.numerics = options.numerics;
  import.cluster = profileOf(options);
  auto module = frontends::importModule(context(), *spec.file,
                                        {*manifest, manifestPath, manifestText}, import);
  if (module)
    setLimits(*module, options);
  if (module && !options.keepOwners.empty() && !setKeptOwners(*module, options.keepOwners, report))
    return nullptr;
  // The verifier finds what the manifest's own checks leave to the dialect.
  if (module && failed(mlir::verify(*module)))
    return nullptr;
  return module;
}

/// Makes a pattern optional in each Op that has it. Adds the patterns of all these operations to `known`.
template <typename Op>
static bool allowIn(mlir::ModuleOp module, mlir::Attribute pattern,
                    llvm::SetVector<StringRef> &known) {
  mlir::Builder builder(module.getContext());
  bool found = false;
  for (auto op : module.getOps<Op>()) {
    for (mlir::ArrayAttr list : {op.getPatterns(), op.getExcept()})
      known.insert_range(list.template getAsValueRange<mlir::StringAttr>());
    if (!llvm::is_contained(op.getPatterns(), pattern) &&
        !llvm::is_contained(op.getExcept(), pattern))
      continue;
    found = true;
    llvm::SmallVector<mlir::Attribute> optional;
    if (mlir::ArrayAttr before = op.getOptionalAttr())
      llvm::append_range(optional, before);
    if (!llvm::is_contained(optional, pattern))
      optional.push_back(pattern);
    op.setOptionalAttr(builder.getArrayAttr(optional));
  }
  return found;
}

bool Input::allowNoMatch(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns) {
  mlir::Builder builder(&context());
  for (const std::string &text : patterns) {
    mlir::Attribute pattern = builder.getStringAttr(text);
    llvm::SetVector<StringRef> known; // texts of attributes, which live longer
    bool found = allowIn<optim::RouteOp>(module, pattern, known);
    found |= allowIn<optim::DivideOp>(module, pattern, known);
    if (!found) {
      report.error("expected a pattern of the specification after --if-present, found '" + text +
                   "'");
      report.hint(known.empty() ? "no claim has patterns"
                                : "its patterns are '" + llvm::join(known, "', '") + "'");
      return false;
    }
  }
  return true;
}

bool Input::setCluster(mlir::ModuleOp module, const CompileOptions &options) {
  if (module.getOps<optim::ClusterOp>().empty())
    decide::setCluster(module, manifest::Cluster().resolve(profileOf(options)), module.getLoc());
  if (options.cluster.empty())
    return true;
  // The verifier compares the cluster with the module's meshes, so none are needed here.
  std::optional<manifest::Cluster> given = readClusterOption(options.cluster, {}, report);
  if (!given)
    return false;
  report.note("--cluster stands in the place of the module's cluster");
  decide::setCluster(module, given->resolve(profileOf(options)), module.getLoc());
  return succeeded(mlir::verify(module));
}

/// Refuses names in IR text that no manifest and no specification may have. Other dialects have no names of
/// users, but constants of any bytes. A plan among these constants is checked when it is read.
static mlir::LogicalResult checkNames(mlir::ModuleOp module) {
  mlir::WalkResult result = module->walk([](mlir::Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (!llvm::is_contained({"builtin", "optim", "comm", "exec"}, dialect))
      return mlir::WalkResult::advance();
    std::string wrong;
    mlir::AttrTypeWalker walker;
    walker.addWalk([&](mlir::StringAttr name) {
      wrong = text::checkName(name.getValue(), "names");
      return wrong.empty() ? mlir::WalkResult::advance() : mlir::WalkResult::interrupt();
    });
    walker.walk<mlir::WalkOrder::PreOrder>(op->getAttrDictionary());
    if (wrong.empty())
      return mlir::WalkResult::advance();
    op->emitError(wrong);
    return mlir::WalkResult::interrupt();
  });
  return mlir::failure(result.wasInterrupted());
}

mlir::OwningOpRef<mlir::ModuleOp> Input::parseModule(const std::string &path) {
  std::optional<StringRef> text = report.read(path, "IR", kMostModule);
  if (!text)
    return nullptr;
  // Source managers need a null terminator. The string that the report keeps has one.
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(*text, path), llvm::SMLoc());
  return mlir::parseSourceFile<mlir::ModuleOp>(sources, mlir::ParserConfig(&context()));
}

namespace {

/// Reports remarks whose name or category matches a pattern, and keeps the names of all remarks.
class MatchingRemarks : public mlir::remark::detail::RemarkEmittingPolicyBase {
public:
  MatchingRemarks(StringRef pattern, std::set<std::string> &names)
      : pattern(pattern), names(names) {}
  void reportRemark(const mlir::remark::detail::Remark &remark) override {
    StringRef name = remark.getRemarkName(), category = remark.getCombinedCategoryName();
    names.insert((name + " (" + category + ")").str());
    if (pattern.match(name) || pattern.match(category))
      reportImpl(remark);
  }
  void finalize() override {}

private:
  llvm::Regex pattern;
  std::set<std::string> &names;
};

} // namespace

bool Input::enableRemarks(StringRef pattern) {
  std::string why;
  if (!llvm::Regex(pattern).isValid(why)) {
    report.error("expected a regular expression after --remarks, found '" + pattern + "': " + why);
    return false;
  }
  remarks = pattern.str();
  // MLIR matches categories alone, and only of kinds that have a pattern. Let it pass all remarks.
  mlir::remark::RemarkCategories categories{".*", ".*", ".*", ".*", ".*"};
  return succeeded(mlir::remark::enableOptimizationRemarks(
      context(), /*streamer=*/nullptr, std::make_unique<MatchingRemarks>(pattern, remarkNames),
      categories, /*printAsEmitRemarks=*/true));
}

mlir::OwningOpRef<mlir::ModuleOp> Input::load(const CompileOptions &options, int &exitCode) {
  if (!options.remarks.empty() && !enableRemarks(options.remarks)) {
    exitCode = kUsageError;
    return nullptr;
  }
  exitCode = kInputError;
  auto usage = [&](const llvm::Twine &message) {
    report.error(message);
    exitCode = kUsageError;
    return nullptr;
  };
  if (isModulePath(options.input)) {
    if (!options.manifest.empty())
      return usage("expected no --manifest beside '" + options.input +
                   "', which names its parameters itself");
    auto module = parseModule(options.input);
    if (!module || failed(checkNames(*module)) || !levelOf(*module))
      return nullptr;
    if (!module->getSymName()) {
      module->emitError("expected a module with a name, which becomes the library's, found none");
      return nullptr;
    }
    if (std::string wrong = checkLibraryName(*module->getSymName()); !wrong.empty()) {
      module->emitError(wrong);
      return nullptr;
    }
    // At later levels routes have been taken, so lowerTo refuses the flag.
    if (levelOf(*module) == Level::Optim && !allowNoMatch(*module, options.ifPresent)) {
      exitCode = kUsageError;
      return nullptr;
    }
    if (levelOf(*module) == Level::Optim) {
      setLimits(*module, options);
      if (!options.keepOwners.empty() && !setKeptOwners(*module, options.keepOwners, report))
        return nullptr;
      if (!setCluster(*module, options))
        return nullptr;
    }
    return module;
  }
  if (refuseInputs(report, options.input, options.manifest)) {
    exitCode = kUsageError;
    return nullptr;
  }
  if (options.manifest.empty())
    return usage("expected --manifest with the parameters of '" + options.input + "', found none");
  // Read both before giving up, so that one run shows the errors of both.
  bool good = loadSpecification(options.input, /*requireRoute=*/true);
  good &= loadManifest(options.manifest);
  if (!good)
    return nullptr;
  auto module = import(options);
  if (module && !allowNoMatch(*module, options.ifPresent)) {
    exitCode = kUsageError;
    return nullptr;
  }
  return module;
}
