//===- CheckProgram.h - Commands compute what the rules say -----*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_CHECKPROGRAM_H
#define STEPC_PASSES_VERIFY_CHECKPROGRAM_H

#include "passes/verify/ChunkForm.h"
#include "passes/verify/ShardVersions.h"
#include "passes/verify/Verify.h"
#include "passes/verify/WorkspaceState.h"

#include <set>

namespace stepc::verify {

/// Runs the commands of a plan on terms (Terms.h). The caller guarantees that plan::validateProgram accepts
/// the plan.
class ProgramCheck {
public:
  ProgramCheck(const plan::Plan &plan, mlir::ModuleOp module, EffectsOf effectsOf);
  /// `commands[i]` must be the operation from which the plan's command i was read.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::Operation *> commands);

  StepFacts facts;

private:
  // Each runs one command on terms. Returns false after it has emitted an error.
#define STEPC_COMMAND(Kind) bool execute(const plan::Kind &command);
  STEPC_COMMANDS(STEPC_COMMAND)
#undef STEPC_COMMAND
  /// Checks that the effects that a command declares include all that its execution read and wrote.
  bool checkEffects(const plan::Command &command);

  /// Read or write the value at an operand's bytes of the workspace, and note the access for checkEffects.
  /// Both return null after an error.
  Held *read(const plan::Operand &operand, const Site &site, int64_t table, bool along);
  Held *write(const plan::Operand &operand, Held value, int64_t table);
  std::optional<llvm::SmallVector<Term>>
  readBatches(const plan::MatrixCommand &command, llvm::ArrayRef<const plan::Operand *> operands);
  Site batchSite(const plan::MatrixCommand &command, const plan::Operand &operand);

  const plan::Group &groupOf(int64_t segment) const;
  bool isEmpty(int64_t segment) const;
  mlir::Type typeOf(plan::DType type) const;
  mlir::func::FuncOp kernelOf(int64_t kernel);

  // If an operand does not fit the command, the functions below emit an error and return null, nullopt or
  // false.
  int64_t targetOf(const plan::Operand &operand, const plan::Group &group) const;
  Version *shards(const plan::Operand &operand, const plan::Place &place, mlir::Type element,
                  bool writes);
  Site blocks(const plan::Operand &operand, int64_t segment, Extents block, mlir::Type element);
  Site staged(const plan::Operand &operand, const plan::Place &place, mlir::Type element,
              Need::Unit unit, int64_t table);
  Version *chunkShards(const ChunkForm::Operand &view, const plan::Operand &operand, int64_t table,
                       bool writes);
  std::optional<Site> chunkSite(const ChunkForm::Operand &view, const plan::Operand &operand,
                                int64_t table);
  bool scalars(const ChunkForm &form, const plan::Operand &operand, int64_t segment, int64_t index,
               llvm::SmallVector<Term> &arguments);
  bool checkSize(const plan::Table &table, mlir::Type element);
  /// The numbers of the model that a dispatch over parameters reads. Returns nullopt after an error.
  std::optional<llvm::SmallVector<Term>> readNumbers(const plan::DispatchParameters::Run &run,
                                                     int64_t index);
  /// The segment of the parameter that stands for the model.
  int64_t segmentOfModel() const;
  /// The site of a value of the model that is kept: of its own line, in this distribution.
  Site siteOfModel(const plan::Operand &operand, plan::Distribution in, mlir::Type element) const;
  /// Checks that a command which changes shards of a group stands behind the point at which the step may be
  /// skipped or, if they are states of the model, before it.
  bool checkSkipped(const plan::Group &group);

  /// What one table of a dispatch writes.
  struct Writes {
    std::vector<std::pair<Version *, Term>> shards;
    std::vector<std::pair<const plan::Operand *, Held>> staged;
  };
  bool evaluateChunks(const ChunkForm &form, const plan::DispatchChunks::Run &run, int64_t index,
                      Writes &writes);
  /// Adds what a kernel writes that reduces `terms` of the elements of a table to a line.
  bool reduceLines(const ChunkForm &form, const plan::Operand &operand, int64_t table, Term terms,
                   Writes &writes);
  void touch(Version *version, int64_t table);

  void need(Need::Unit unit, int64_t index, int64_t bytes, int64_t elements, int64_t size);
  TableUse &use(int64_t table);
  void complete(const Held &value, int64_t consumer);

  const plan::Plan &plan;
  mlir::ModuleOp module;
  EffectsOf effectsOf;
  mlir::SymbolTable symbols;
  ShardVersions versions;
  WorkspaceState workspace;
  mlir::Operation *user = nullptr;
  /// What the current command has read and written so far, by operand.
  struct Accesses {
    bool reads = false, writes = false;
  };
  llvm::DenseMap<const plan::Operand *, Accesses> accesses;
  bool usesScratch = false;
  int64_t started = 0;
  bool hasSkipped = false; ///< whether the command that may skip the step has run
  /// How the current dispatch accesses a version of shards: the number, among the dispatch's tables, of the
  /// one that does so (-1 if several do), and whether it has written the shards.
  struct Touch {
    int64_t table;
    bool isWritten;
  };
  llvm::DenseMap<Version *, Touch> touched;
  llvm::DenseMap<mlir::Operation *, mlir::FailureOr<ChunkForm>> forms;
  llvm::DenseMap<int64_t, size_t> useIndex;
  std::set<std::tuple<int64_t, int64_t, int64_t>> ways;
};

} // namespace stepc::verify

#endif
