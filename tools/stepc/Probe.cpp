//===- Probe.cpp - stepc probe ---------------------------------------------===//

#include "tools/stepc/Probe.h"

#include "tools/stepc/Files.h"
#include "tools/stepc/OptionChecks.h"
#include "tools/stepc/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <dlfcn.h>
#include <unistd.h>

namespace json = llvm::json;

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

/// Rounds to three digits, because more would only look exact.
static double rounded(double value) {
  if (value == 0)
    return 0;
  double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 2);
  double whole = std::round(value / unit);
  return unit < 1 ? whole / std::round(1 / unit) : whole * unit;
}

/// Adds levels to the cluster, fitted to their samples. Returns false, after an error, if a level has no
/// samples.
static bool addLevels(const std::vector<ProbedLevel> &levels, manifest::Cluster &cluster,
                      Report &report) {
  for (const ProbedLevel &level : levels) {
    std::optional<cost::Link> link = cost::fitLink(level.samples);
    if (!link) {
      report.error("expected times of messages of level '" + level.name + "', found none");
      return false;
    }
    manifest::ClusterLevel &made = cluster.levels.emplace_back();
    made.name = level.name;
    if (level.ranks != cost::Level::kAll)
      made.ranks = level.ranks;
    made.bandwidth = rounded(link->bandwidth / 1e9);
    made.latency = rounded(link->latency * 1e6);
    made.gap = rounded(link->gap * 1e6);
  }
  for (std::optional<double> *figure :
       {&cluster.tflops, &cluster.memory, &cluster.capacity, &cluster.launch})
    if (*figure)
      **figure = rounded(**figure);
  return true;
}

static int write(const manifest::Cluster &cluster, const std::string &output, Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  json::OStream out(os, 2);
  out.object([&] { manifest::writeCluster(out, cluster); });
  os << '\n';
  return writeFile(report, output, {text}) ? kSuccess : kInputError;
}

//===----------------------------------------------------------------------===//
// Samples of another program
//===----------------------------------------------------------------------===//

static void readLevel(manifest::JsonText &text, const json::Value &value, const std::string &at,
                      std::vector<ProbedLevel> &levels) {
  const json::Object *object = text.object(value, at, "a level", {"name", "ranks", "samples"});
  if (!object)
    return;
  ProbedLevel &level = levels.emplace_back(ProbedLevel{"", cost::Level::kAll});
  if (const json::Value *name = text.required(*object, "name", at))
    level.name = text.name(*name, at + "/name", "a name").value_or("");
  if (const json::Value *ranks = object->get("ranks"))
    level.ranks =
        text.integer(*ranks, at + "/ranks", "a count from 1 to 2147483648", 1, int64_t(1) << 31)
            .value_or(1);
  const json::Value *list = text.required(*object, "samples", at);
  const json::Array *samples =
      list ? text.array(*list, at + "/samples", "an array of samples") : nullptr;
  for (size_t i = 0; samples && i < samples->size(); ++i) {
    const json::Array *sample = (*samples)[i].getAsArray();
    std::optional<double> figures[3];
    for (size_t j = 0; sample && sample->size() == 3 && j < 3; ++j)
      figures[j] = (*sample)[j].getAsNumber();
    if (figures[0] && figures[1] && figures[2] && *figures[0] >= 1 && *figures[1] > 0 &&
        *figures[2] > 0 && *figures[2] < 1e6)
      level.samples.push_back({*figures[0], *figures[1], *figures[2]});
    else
      text.mismatch(at + "/samples/" + llvm::Twine(i),
                    "[messages, bytes of each, seconds], all above 0", (*samples)[i]);
  }
}

static int probeSamples(const ProbeCommand &command, Report &report) {
  std::optional<StringRef> found = report.read(command.samples, "samples", kMostTable);
  if (!found)
    return kInputError;
  manifest::ErrorList errors;
  manifest::JsonText text(*found, command.samples, errors);
  manifest::Cluster cluster;
  std::vector<ProbedLevel> levels;
  bool good = text.read([&](const json::Value &root) {
    const json::Object *object = text.object(root, "", "samples", {"levels", "device"});
    const json::Value *list = object ? text.required(*object, "levels", "") : nullptr;
    if (const json::Array *array =
            list ? text.array(*list, "/levels", "an array of levels") : nullptr)
      for (auto [i, level] : llvm::enumerate(*array))
        readLevel(text, level, "/levels/" + std::to_string(i), levels);
    if (const json::Value *device = object ? object->get("device") : nullptr)
      manifest::readDevice(text, *device, "/device", cluster);
  });
  report.errors(errors);
  if (!good || !addLevels(levels, cluster, report))
    return kInputError;
  return write(cluster, command.output, report);
}

//===----------------------------------------------------------------------===//
// Ranks of MPI
//===----------------------------------------------------------------------===//

/// Opens `libstepc_mpi.so` beside the tool, as it is built and installed; otherwise wherever the loader finds
/// it.
static void *openMpi() {
  std::string tool = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  StringRef folder = llvm::sys::path::parent_path(llvm::sys::path::parent_path(tool));
  // RTLD_GLOBAL, because MPI loads components of its own, which look for MPI's symbols.
  if (void *found = dlopen((folder + "/lib/libstepc_mpi.so").str().c_str(), RTLD_NOW | RTLD_GLOBAL))
    return found;
  return dlopen("libstepc_mpi.so", RTLD_NOW | RTLD_GLOBAL);
}

static int probeMpi(const ProbeCommand &command, Report &report) {
  auto fail = [&](llvm::Error error) {
    report.error(llvm::toString(std::move(error)));
    return kInternalError;
  };
  void *library = openMpi();
  using World = int32_t (*)(stepc_transport *, char *, int64_t);
  auto world = library ? World(dlsym(library, "stepc_mpi_world")) : nullptr;
  if (!world) {
    report.error("expected libstepc_mpi.so beside stepc, and MPI: " + llvm::Twine(dlerror()));
    report.hint("torch's processes are measured by `torchrun … -m stepc.torch.probe`");
    return kInternalError;
  }
  stepc_transport transport{};
  transport.struct_size = sizeof transport;
  char text[512] = "";
  if (world(&transport, text, sizeof text)) {
    report.error(text);
    return kInternalError;
  }
  llvm::scope_exit end([&] { transport.destroy(transport.context); });
  ProbeRanks ranks(transport);
  if (ranks.size() < 2) {
    report.error("expected several ranks to measure, found one");
    report.hint("`mpirun -np 4 stepc probe -o cluster.json` starts four");
    return kUsageError;
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  llvm::Expected<std::vector<std::string>> hosts = ranks.exchangeNames(host);
  if (!hosts)
    return fail(hosts.takeError());
  llvm::Expected<std::vector<ProbedLevel>> levels = levelsOf(*hosts, command.levels);
  if (!levels) {
    // All ranks find the error, and rank 0 prints it.
    std::string wrong = llvm::toString(levels.takeError());
    if (ranks.rank() == 0)
      report.error(wrong);
    return kUsageError;
  }
  if (llvm::Error error = ranks.measure(*levels))
    return fail(std::move(error));
  manifest::Cluster cluster;
  if (llvm::Error error = measureDevice(ranks, command.threads, llvm::count(*hosts, host), cluster))
    return fail(std::move(error));
  if (ranks.rank() != 0)
    return kSuccess;
  return addLevels(*levels, cluster, report) ? write(cluster, command.output, report)
                                             : kInternalError;
}

int driver::runProbe(const ProbeCommand &command) {
  Report report;
  if (!areApart(report, {{"-o", command.output}}, {{"--samples", command.samples}}))
    return kUsageError;
  if (!canWriteFile(report, "-o", command.output))
    return kInputError;
  return command.samples.empty() ? probeMpi(command, report) : probeSamples(command, report);
}
