//===- Options.h - What the command line asks for ---------------*- C++ -*-===//
//
// Plain data: CLI11, which needs exceptions, stays in Options.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TOOLS_STEPC_OPTIONS_H
#define STEPC_TOOLS_STEPC_OPTIONS_H

#include "passes/codegen/Sanitizer.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stepc::driver {

/// What scripts can tell from the exit status.
enum ExitCode : int {
  kSuccess = 0,
  kInputError = 1,    ///< The files say something wrong.
  kUsageError = 2,    ///< The command line is wrong.
  kInternalError = 3, ///< stepc, or a tool that it calls, failed.
};

/// What is said with kInternalError, where no tool that stepc calls is to blame.
inline constexpr const char *kFaultOfStepc =
    "this is a fault of stepc, not of your input; please report it with the specification and the "
    "manifest";

/// What shapes the compiled library. `compile`, `explain`, `simulate` and `run` share it.
struct CompileOptions {
  std::string input; ///< A specification, or any level's .mlir.
  std::string manifest;
  std::vector<std::string> targets; ///< one chip each; none: the host, or what the .mlir says
  std::string cluster;              ///< A profile, a file or JSON; empty: the manifest's.
  std::string products;             ///< A table of pinned products; empty: none.
  std::string numerics = "exact";
  std::vector<std::string> strategies;
  std::vector<std::string> ifPresent; ///< Patterns of the specification that may match nothing.
  int64_t workspaceLimit = 0;         ///< 0: none.
  int64_t stateLimit = 0;             ///< 0: none.
  int64_t maxPeers = 0;               ///< 0: any number.
  std::string keepOwners;             ///< The previous library; empty: none.
  int64_t waves = 0;                  ///< 0: the least workspace within 3 % of the best time.
  codegen::Sanitizer sanitizer = codegen::Sanitizer::None;
  int optimize = -1;   ///< 0: quick to compile; not given: 2.
  std::string remarks; ///< A pattern of names and categories of remarks; empty: none.
  bool printIrAfterAll = false;
  bool timing = false;
};

struct CompileCommand : CompileOptions {
  std::string emit; ///< A level; empty: the library.
  std::string output = ".";
};

struct CheckCommand {
  std::string spec, manifest;
  std::vector<std::string> ifPresent;
  bool json = false;
};

struct ExplainCommand : CompileOptions {
  bool json = false;
};

struct SimulateCommand : CompileOptions {
  std::string json, trace, html; ///< Files; empty: none.
  std::string messages;          ///< "streams" or "waits"; empty: as the target's device does.
  std::pair<int64_t, double> oversubscribed = {1, 1}; ///< This many ranks share this many devices.
};

struct FormatCommand {
  std::vector<std::string> files; ///< "-": standard input to standard output.
  bool check = false;
};

struct OptimizersCommand {
  std::string name; ///< Of a file of the library; empty: list them.
};

struct RunCommand : CompileOptions {
  std::string tensors, output, library;
  int64_t steps = 1;
  int threads = 0; ///< 0: one.
  bool reference = false, graph = false;
  std::vector<std::string> watch; ///< Patterns of names whose values are printed after each step.
  /// "Muon.1.lr" and its value.
  std::vector<std::pair<std::string, double>> hyperparameters;
};

struct ManifestCommand {
  std::string mesh, output, gradDType;
  std::vector<std::string> tensors, place, placeGrad, batch;
};

struct ProbeCommand {
  std::string output, samples;
  std::vector<std::pair<std::string, int64_t>> levels; ///< Names and ranks; none: hosts.
  int64_t threads = 1;
};

struct CommandLine {
  enum class Command {
    None,
    Compile,
    Check,
    Explain,
    Simulate,
    Format,
    Run,
    Manifest,
    Probe,
    Optimizers
  };
  Command command = Command::None;
  CompileCommand compile;
  CheckCommand check;
  ExplainCommand explain;
  SimulateCommand simulate;
  FormatCommand format;
  RunCommand run;
  ManifestCommand manifest;
  ProbeCommand probe;
  OptimizersCommand optimizers;
};

/// Fills `line`. Returns true if a command is to run. Otherwise help, a version or an error was printed, and
/// `exitCode` is set.
bool parseCommandLine(int argc, char **argv, CommandLine &line, int &exitCode);

/// The names of all strategies that the dialects list.
std::vector<std::string> strategyNames();

/// Bytes of "4096", "64KiB", "1.5 MiB" or "2GiB", rounded down after a unit. -1 if the text has another form.
int64_t parseBytes(const std::string &text);

int runCompile(const CompileCommand &command);
int runCheck(const CheckCommand &command);
int runExplain(const ExplainCommand &command);
int runSimulate(const SimulateCommand &command);
int runFormat(const FormatCommand &command);
int runRun(const RunCommand &command);
int runManifest(const ManifestCommand &command);
int runProbe(const ProbeCommand &command);
int runOptimizers(const OptimizersCommand &command);

} // namespace stepc::driver

#endif
