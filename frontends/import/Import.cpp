//===- Import.cpp - A specification and a manifest as level 1 --------------===//

#include "frontends/import/Import.h"

#include "frontends/import/ManifestLines.h"
#include "frontends/language/Emit.h"
#include "frontends/manifest/Names.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"
#include "passes/decide/ClusterOfModule.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::frontends;

std::string frontends::libraryName(StringRef path) { return llvm::sys::path::stem(path).str(); }

// optim.parameter accepts every size that a manifest may have.
static_assert(manifest::kMaxElements == optim::kMostElements);

namespace {

class Importer {
public:
  Importer(MLIRContext &context, const lang::File &file, const ManifestFile &manifest)
      : context(context), file(file), manifest(manifest.manifest), path(manifest.path),
        text(manifest.text), builder(&context) {}

  OwningOpRef<ModuleOp> run(const ImportOptions &options) {
    lang::loadDialects(context);
    context.loadDialect<comm::CommDialect>();
    // Line 0, because an error about the whole file belongs to no line.
    OwningOpRef<ModuleOp> module =
        ModuleOp::create(FileLineColLoc::get(&context, file.source->name(), 0, 0), options.name);
    comm::setLevel(*module, "optim");
    (*module)->setAttr(optim::kNumericsAttr, builder.getStringAttr(options.numerics));
    builder.setInsertionPointToEnd(module->getBody());
    if (failed(nameParameters()))
      return nullptr;
    importMeshes();
    decide::setCluster(*module,
                       manifest.cluster.value_or(manifest::Cluster()).resolve(options.cluster),
                       FileLineColLoc::get(&context, path, 0, 0));
    // A rule that no route uses is left out: every level and the plan would only carry it along.
    lang::emitDefinitions(file, *module, [&](const lang::Rule &rule) {
      return llvm::any_of(file.route()->claims,
                          [&](const lang::Claim &c) { return c.rule == &rule; });
    });
    builder.setInsertionPointToEnd(module->getBody());
    importRoutes();
    importBlocks();
    importParameters();
    return module;
  }

private:
  Location locate(ArrayRef<LinePosition> positions, size_t index) {
    LinePosition at = index < positions.size() ? positions[index] : LinePosition();
    return FileLineColLoc::get(&context, path, at.line, at.column);
  }

  Location locate(lang::SourceRange range) {
    lang::LineColumn at = file.source->lineColumn(range.begin);
    return FileLineColLoc::get(&context, file.source->name(), at.line, at.column);
  }

  /// Fills `names` with canonical names, which must differ, also from those of frozen parameters. Fails, too,
  /// if all parameters are frozen.
  LogicalResult nameParameters() {
    positions = namePositions(text, "parameters");
    llvm::StringMap<size_t> seen;
    bool stepped = false;
    for (auto [index, parameter] : llvm::enumerate(manifest.parameters)) {
      std::string name = manifest::canonicalName(parameter.name);
      auto [it, isNew] = seen.try_emplace(name, index);
      if (!isNew) {
        auto diag =
            emitError(locate(positions, index), "expected parameters of different names, found '")
            << parameter.name << "', which is '" << name << "' without wrappers' prefixes";
        diag.attachNote(locate(positions, it->second)) << "the other is here";
        return diag;
      }
      names.push_back(std::move(name));
      stepped |= parameter.requiresGrad;
    }
    if (!stepped)
      return emitError(FileLineColLoc::get(&context, path, 0, 0),
                       "expected a parameter that requires a gradient, found none");
    return success();
  }

  void importMeshes() {
    llvm::StringSet<> used;
    for (const manifest::Parameter &parameter : manifest.parameters)
      if (parameter.requiresGrad)
        used.insert(parameter.mesh);
    std::vector<LinePosition> lines = namePositions(text, "meshes");
    for (auto [index, mesh] : llvm::enumerate(manifest.meshes)) {
      if (!used.contains(mesh.name))
        continue;
      SmallVector<StringRef> axes(mesh.axes.begin(), mesh.axes.end());
      optim::MeshOp::create(builder, locate(lines, index), mesh.name, builder.getStrArrayAttr(axes),
                            mesh.sizes, mesh.ranks);
    }
  }

  ArrayAttr strings(const std::vector<lang::StringLiteral> &literals) {
    SmallVector<StringRef> values;
    for (const lang::StringLiteral &literal : literals)
      values.push_back(literal.value);
    return builder.getStrArrayAttr(values);
  }

  void importRoutes() {
    for (const lang::Claim &claim : file.route()->claims) {
      ArrayAttr patterns = strings(claim.globs);
      auto route = optim::RouteOp::create(builder, locate(claim.range), claim.name,
                                          claim.rule->name.text, claim.isMatrix, claim.isRest,
                                          patterns, claim.ifPresent ? patterns : ArrayAttr(),
                                          strings(claim.except), claim.values, claim.missingGrad);
      if (claim.where)
        lang::emitCondition(*claim.where, *file.source, route.getWhere());
    }
  }

  void importBlocks() {
    for (const lang::BlocksStatement &blocks : file.blocks) {
      ArrayAttr patterns = strings(blocks.globs);
      SmallVector<int64_t> numbers;
      for (const lang::Constant &number : blocks.numbers)
        numbers.push_back(int64_t(number.value));
      optim::DivideOp::create(
          builder, locate(blocks.range), patterns, blocks.ifPresent ? patterns : ArrayAttr(),
          strings(blocks.except),
          blocks.flatten ? builder.getI64IntegerAttr(int64_t(blocks.flatten->value))
                         : IntegerAttr(),
          blocks.isColumns ? plan::Division::Columns : plan::Division::Rows, blocks.sizes,
          numbers.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(numbers),
          blocks.repeat ? int64_t(blocks.repeat->value) : 1);
    }
  }

  void importParameters() {
    for (auto [index, parameter] : llvm::enumerate(manifest.parameters)) {
      // The name as written becomes an alias, because patterns match it, too.
      SmallVector<StringRef> aliases;
      if (parameter.name != names[index])
        aliases.push_back(parameter.name);
      SmallVector<std::string> canonical;
      for (const std::string &alias : parameter.aliases)
        canonical.push_back(manifest::canonicalName(alias));
      for (auto [written, name] : llvm::zip(parameter.aliases, canonical)) {
        aliases.push_back(written);
        if (written != name)
          aliases.push_back(name);
      }
      if (!parameter.requiresGrad) {
        optim::FrozenOp::create(builder, locate(positions, index), names[index],
                                builder.getStrArrayAttr(aliases));
        continue;
      }
      ArrayAttr placements = lower(parameter.placements);
      auto unlessEqual = [&](const std::vector<plan::Placement> &own) {
        ArrayAttr lowered = lower(own);
        return lowered == placements ? ArrayAttr() : lowered;
      };
      optim::ParameterOp::create(
          builder, locate(positions, index), builder.getStringAttr(names[index]),
          builder.getDenseI64ArrayAttr(parameter.shape),
          builder.getI64IntegerAttr(parameter.batchAxes),
          parameter.flatten ? builder.getI64IntegerAttr(parameter.flatten) : IntegerAttr(),
          /*flatten_specified=*/UnitAttr(), /*flatten_overridden=*/IntegerAttr(),
          TypeAttr::get(optim::toType(&context, parameter.dtype)),
          TypeAttr::get(optim::toType(&context, parameter.gradDType)),
          FlatSymbolRefAttr::get(&context, parameter.mesh), placements,
          unlessEqual(parameter.gradPlacements), unlessEqual(parameter.statePlacements),
          parameter.blocks.parts.empty() ? optim::BlocksAttr()
                                         : optim::BlocksAttr::get(&context, parameter.blocks),
          /*specified=*/UnitAttr(), /*overridden=*/optim::BlocksAttr(),
          builder.getStrArrayAttr(aliases), FlatSymbolRefAttr(), /*sizes=*/DenseI64ArrayAttr());
    }
  }

  ArrayAttr lower(const std::vector<plan::Placement> &placements) {
    SmallVector<Attribute> lowered;
    for (const plan::Placement &placement : placements)
      lowered.push_back(optim::toAttribute(&context, placement));
    return builder.getArrayAttr(lowered);
  }

  MLIRContext &context;
  const lang::File &file;
  const manifest::Manifest &manifest;
  StringRef path, text;
  OpBuilder builder;
  std::vector<LinePosition> positions;
  std::vector<std::string> names; // canonical, per parameter of the manifest
};

} // namespace

OwningOpRef<ModuleOp> frontends::importModule(MLIRContext &context, const lang::File &file,
                                              const ManifestFile &manifest,
                                              const ImportOptions &options) {
  return Importer(context, file, manifest).run(options);
}

OwningOpRef<ModuleOp> frontends::importRules(MLIRContext &context, const lang::File &file,
                                             StringRef name) {
  lang::loadDialects(context);
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(FileLineColLoc::get(&context, file.source->name(), 0, 0), name);
  lang::emitDefinitions(file, *module);
  return module;
}
