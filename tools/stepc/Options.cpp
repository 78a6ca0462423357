//===- Options.cpp - The command line, by CLI11 ----------------------------===//
//
// This source and OtherOptions.cpp have exceptions, because CLI11 reports by throwing. Nothing of MLIR is
// included here.
//
//===----------------------------------------------------------------------===//

#include "tools/stepc/Options.h"

#include "frontends/text/Text.h"
#include "passes/kernels/GpuChips.h"
#include "tools/stepc/OptionChecks.h"
#include "tools/stepc/OtherOptions.h"
#include "tools/stepc/Version.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <iostream>
#include <sstream>

using namespace stepc::driver;

namespace {

/// The most that options accept. Nobody asks for more on purpose.
constexpr int64_t kMostWaves = 1000000, kMostPeers = 1000000, kMostSteps = 1000000000;

void addIfPresent(CLI::App &app, std::vector<std::string> &patterns) {
  app.add_option("--if-present", patterns,
                 "Let a pattern of the specification, as written there, match nothing")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("PATTERN");
}

void addCompileOptions(CLI::App &app, CompileOptions &options, const char *inputHelp,
                       const char *targetsHelp = "") {
  app.add_option("input", options.input, inputHelp)->required()->type_name("SPEC");
  app.add_option("-m,--manifest", options.manifest, "The parameters and where they live (JSON)")
      ->type_name("M");
  auto take = [&options](const std::vector<std::string> &texts) {
    for (const std::string &text : texts)
      llvm::append_range(options.targets, stepc::targetsByChip(text));
    if (std::string wrong = checkPrograms(options.targets); !wrong.empty())
      throw CLI::ValidationError("--target", wrong);
  };
  app.add_option_function(
         "--target", std::function<void(const std::vector<std::string> &)>(take),
         "cpu (the default) or cpu:CHIP; cuda:GPU,… such as cuda:sm_80,sm_90a, a step for each; "
         "emulated:GPU, a GPU's kernels on this machine; or interpret, interpret:CHIP or "
         "interpret:GPU, the bits of cpu or emulated without generated code. docs/gpu.md has all "
         "forms for GPUs" +
             std::string(targetsHelp))
      ->check(checkTarget)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("T");
  app.add_option("--cluster", options.cluster,
                 "Choose the plan for these machines, in the place of the manifest's cluster: " +
                     profileNames() +
                     ", or a file that says what such a cluster says (JSON), as stepc probe "
                     "writes it; results are the same")
      ->check(checkCluster)
      ->type_name("NAME|FILE");
  app.add_option(
         "--products", options.products,
         "A table of algorithms of cuBLASLt (JSON), which benchmarks/pin_products.py makes on "
         "a GPU: where library and GPU are an entry's, it multiplies in place of the kernel; "
         "with --target cuda:<gpu>,…")
      ->type_name("FILE");
  app.add_option("--strategy", options.strategies,
                 "Force " + alternatives(strategyNames()) +
                     " for the parameters that match; the last match holds")
      ->check(checkStrategy)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("'PATTERN=NAME'");
  app.add_option("--max-peers", options.maxPeers,
                 "With how many others a rank may exchange at a time when blocks come together and "
                 "go back: strategies that ask for more are not legal")
      ->check([](const std::string &text) { return checkCount(text, kMostPeers); })
      ->type_name("N");
  addIfPresent(app, options.ifPresent);
  app.add_option_function<std::string>(
         "--workspace-limit",
         [&options](const std::string &text) { options.workspaceLimit = parseBytes(text); },
         "At most so many bytes of workspace per rank, say 4096, 64KiB or 1.5GiB, or an error: the "
         "number of waves is chosen for it")
      ->check(checkBytes)
      ->type_name("BYTES");
  app.add_option_function<std::string>(
         "--state-limit",
         [&options](const std::string &text) { options.stateLimit = parseBytes(text); },
         "At most so many bytes of states per rank, or an error: owners of blocks whose states "
         "stay with them are chosen for it")
      ->check(checkBytes)
      ->type_name("BYTES");
  app.add_option("--keep-owners", options.keepOwners,
                 "The library that stepped before: blocks whose states stay with them keep its "
                 "owners, so that "
                 "fewer states move, if the busiest rank is then at most 5 % busier by the model")
      ->type_name("FILE");
  app.add_option(
         "--waves", options.waves,
         "Force this number of waves, whatever the model says of time and workspace; a warning "
         "says where blocks fill fewer")
      ->check([](const std::string &text) { return checkCount(text, kMostWaves); })
      ->type_name("N");
  app.add_option("--numerics", options.numerics,
                 "exact (the default): bits do not depend on ranks; fast: they may, within the "
                 "tolerances that docs/promises.md states")
      ->check(checkNumerics)
      ->type_name("N");
  app.add_option(
         "--remarks", options.remarks,
         "Print on standard error what passes chose and refused, and why: the remarks whose "
         "name or category matches, for example 'waves|strategy-chosen', or . for all")
      ->type_name("REGEX");
  app.add_flag("--print-ir-after-all", options.printIrAfterAll,
               "Print the IR after every pass on standard error")
      ->group("Debugging");
  app.add_flag("--timing", options.timing, "Print the time of every pass on standard error")
      ->group("Debugging");
}

/// Adds -O to commands that make code.
void addOptimize(CLI::App &app, CompileOptions &options) {
  app.add_option("-O", options.optimize,
                 "0: compile in about half of the time, to try things; steps take longer and have "
                 "the same bits. 2 (the default): optimize the code. A GPU's is always optimized")
      ->check([](const std::string &text) { return checkOneOf(text, {"0", "2"}); })
      ->take_last() // as compilers do
      ->type_name("LEVEL");
}

void defineCompile(CLI::App &root, CompileCommand &command) {
  CLI::App *app = root.add_subcommand("compile", "Compile a specification into a shared library");
  addCompileOptions(*app, command, "A specification (.optim), or any level's .mlir to go on from",
                    ". Given again it adds a target to the library");
  app->add_option(
         "--emit", command.emit,
         "Stop at a level and write DIR/<name>.mlir: optim, decided, comm, scheduled, exec "
         "or llvm. What is emitted before exec is not proven")
      ->check([](const std::string &text) {
        return checkOneOf(text, {"optim", "decided", "comm", "scheduled", "exec", "llvm"});
      })
      ->type_name("LEVEL");
  app->add_option("-o,--output", command.output,
                  "Folder for lib<name>.so, <name>.h and <name>.json (default: here), and "
                  "<name>.<target>.json of further targets; with --emit, - is standard output")
      ->type_name("DIR");
  addOptimize(*app, command);
  // Only this command has it: the program that loads an instrumented library must also be instrumented.
  app->add_option_function<std::string>(
         "--sanitize",
         [&command](const std::string &text) {
           command.sanitizer = text == "thread" ? stepc::codegen::Sanitizer::Thread
                                                : stepc::codegen::Sanitizer::Address;
         },
         "address or thread: instrument the generated code with that sanitizer, of cpu and "
         "emulated")
      ->check([](const std::string &text) { return checkOneOf(text, {"address", "thread"}); })
      ->type_name("S");
  app->footer("Examples:\n"
              "  stepc compile muon.optim --manifest model.json -o build\n"
              "  stepc compile muon.optim --manifest model.json --emit decided -o -\n"
              "  stepc compile build/muon.mlir -o build\n"
              "  stepc compile muon.optim -m model.json --target cpu --target cuda:sm_90a\n"
              "  stepc compile muon.optim -m model.json --strategy '*.attn.*=gather' "
              "--workspace-limit 256MiB\n\n" +
              std::string(kExitCodes));
}

void defineCheck(CLI::App &root, CheckCommand &command) {
  CLI::App *app = root.add_subcommand("check", "Check a specification, and routes with a manifest");
  app->add_option("spec", command.spec, "A specification (.optim)")->required()->type_name("SPEC");
  app->add_option("-m,--manifest", command.manifest, "Also give every parameter its route")
      ->type_name("M");
  app->add_flag("--json", command.json, "Print parameters and routes as JSON (needs --manifest)");
  addIfPresent(*app, command.ifPresent);
  app->footer("Examples:\n"
              "  stepc check muon.optim\n"
              "  stepc check muon.optim --manifest model.json --json\n\n" +
              std::string(kExitCodes));
}

void defineExplain(CLI::App &root, ExplainCommand &command) {
  CLI::App *app =
      root.add_subcommand("explain", "Show groups, strategies, their costs and the alternatives");
  addCompileOptions(*app, command, "A specification (.optim), or a level's .mlir up to scheduled");
  app->add_flag("--json", command.json, "Print the table as JSON");
  app->footer(
      "Examples:\n"
      "  stepc explain muon.optim --manifest model.json\n"
      "  stepc explain muon.optim --manifest model.json --strategy '*.attn.*=gather' --json\n"
      "  stepc explain muon.optim --manifest model.json --target cuda:sm_90a\n\n" +
      std::string(kExitCodes));
}

void defineSimulate(CLI::App &root, SimulateCommand &command) {
  CLI::App *app = root.add_subcommand(
      "simulate", "Walk a step of all ranks on paper: its time, who waits, bytes on each link");
  addCompileOptions(*app, command, "A specification (.optim), or a level's .mlir up to exec");
  auto file = [&](const char *name, std::string &path, const char *help) {
    app->add_option(name, path, help)->type_name("FILE");
  };
  file("--json", command.json,
       "Write all figures as JSON; - is standard output, without the table");
  file("--trace", command.trace, "Write a trace for Perfetto or chrome://tracing");
  file("--html", command.html, "Write one page with timeline, loads and bytes; it fetches nothing");
  app->add_option("--messages", command.messages,
                  "streams: they travel while ranks compute, as on a GPU (the default for cuda and "
                  "profiles of GPUs); waits: a rank's thread takes them in while it waits, as over "
                  "MPI (the default else)")
      ->check([](const std::string &text) { return checkOneOf(text, {"streams", "waits"}); })
      ->type_name("HOW");
  app->add_option_function<std::string>(
         "--oversubscribe",
         [&command](const std::string &text) {
           command.oversubscribed = parseOversubscription(text);
         },
         "So many ranks in a row share so many devices, say 8/2: 8 ranks of one thread on 2 cores")
      ->check(checkOversubscription)
      ->type_name("RANKS/DEVICES");
  app->footer("Examples:\n"
              "  stepc simulate muon.optim --manifest model.json\n"
              "  stepc simulate muon.optim --manifest model.json --target cuda:sm_90a --html "
              "step.html --trace step.json\n"
              "  stepc simulate muon.optim --manifest model.json --oversubscribe 8/2 --json -\n\n" +
              std::string(kExitCodes));
}

void defineRun(CLI::App &root, RunCommand &command) {
  CLI::App *app = root.add_subcommand(
      "run", "Compile, and step global tensors on in-process ranks (or the float64 reference)");
  addCompileOptions(*app, command, "A specification (.optim)",
                    ". With --library: which of its targets, say emulated");
  app->add_option(
         "--tensors", command.tensors,
         "Tensors param:NAME, grad:NAME or grad:NAME@STEP, and state:NAME:STATE: a safetensors "
         "file, or the index of several")
      ->required()
      ->type_name("IN.safetensors");
  app->add_option("--steps", command.steps, "How many steps (default 1)")
      ->check([](const std::string &text) { return checkCount(text, kMostSteps); })
      ->type_name("N");
  app->add_option("-o,--output", command.output, "Where parameters and states go, whole")
      ->required()
      ->type_name("OUT.safetensors");
  app->add_flag("--reference", command.reference,
                "Interpret level 1 in float64, unsharded, and write float64: without a target, "
                "waves or threads");
  app->add_option("--threads", command.threads, "Workers of each rank (default 1)")
      ->check([](const std::string &text) { return checkCount(text, kMostThreads); })
      ->type_name("T");
  app->add_flag("--graph", command.graph,
                "Replay each step as one graph, of targets that have them: cuda and emulated");
  addOptimize(*app, command);
  app->add_option("--library", command.library, "Step a library, compiled already from SPEC")
      ->type_name("LIB.so");
  app->add_option_function<std::vector<std::string>>(
         "--hyper",
         [&command](const std::vector<std::string> &list) {
           for (const std::string &text : list)
             command.hyperparameters.push_back(parseHyperparameter(text));
         },
         "Set a hyperparameter of a route")
      ->check(checkHyperparameter)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("'ROUTE.NAME=VALUE'");
  app->add_option("--watch", command.watch,
                  "Print named values after each step: lets, states, grad and param whose NAME or "
                  "OPTIMIZER.NAME matches; --target interpret is quickest to try a rule")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  app->footer("Examples:\n"
              "  stepc run muon.optim --manifest m.json --tensors in.safetensors --steps 3 "
              "-o out.safetensors\n"
              "  stepc run muon.optim --manifest m.json --tensors in.safetensors --reference "
              "--hyper Muon.lr=0.1 -o ref.safetensors\n"
              "  stepc run muon.optim --manifest m.json --tensors in.safetensors --watch 'Muon.*' "
              "--target interpret -o out.safetensors\n\n" +
              std::string(kExitCodes));
}

/// All spellings of a command's options.
std::vector<std::string> optionNames(const CLI::App &app, bool isLong) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : isLong ? option->get_lnames() : option->get_snames())
      names.push_back((isLong ? "--" : "-") + name);
  return names;
}

/// The suggestion for the first word that looks like an option of `app` and is none. Empty if there is none.
std::string suggestOption(const CLI::App &app, const std::vector<std::string> &words) {
  std::vector<std::string> names = optionNames(app, /*isLong=*/true);
  for (llvm::StringRef given : llvm::drop_begin(words)) {
    llvm::StringRef word = given.split('=').first;
    if (word.starts_with("--") && !llvm::is_contained(names, word))
      return suggest(word, names);
  }
  return "";
}

bool isOption(llvm::StringRef word) { return word.size() > 1 && word.starts_with("-"); }

/// The error about the words that a command cannot use. `hint` gets a hint.
std::string refuseWords(const CLI::App &app, const std::string &name, std::string &hint) {
  std::vector<std::string> rest = app.remaining();
  auto found = llvm::find_if(rest, isOption);
  if (found == rest.end())
    return std::string("the following argument") + (rest.size() > 1 ? "s were" : " was") +
           " not expected: " + llvm::join(rest, " ");
  if (!llvm::StringRef(*found).starts_with("--"))
    hint = "its options of one letter are " + llvm::join(optionNames(app, /*isLong=*/false), ", ") +
           "; ";
  return "expected an option of `" + name + "`, found '" + *found + "'";
}

/// The error about the first argument that `app` requires and was not given.
std::string refuseAbsence(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    if (option->get_required() && option->count() == 0)
      return "expected " +
             (option->get_positional() ? option->get_type_name() : option->get_name()) +
             ", found none";
  return {};
}

/// Checks that the first word is a command. Turns `help` and `version` into the options that CLI11 has for
/// them. Returns false after an error.
bool takeCommand(const CLI::App &app, std::vector<std::string> &words) {
  std::vector<std::string> names;
  for (const CLI::App *sub : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(sub->get_name());
  auto refuse = [&](const std::string &found, const std::string &hint) {
    std::cerr << "stepc: error: expected a command (" << llvm::join(names, ", ") << "), found "
              << stepc::text::printable(found) << "\nhint: " << stepc::text::printable(hint)
              << "`stepc --help` lists them, `stepc COMMAND --help` explains one\n";
    return false;
  };
  if (words.empty())
    return refuse("none", "");
  std::vector<std::string> known = names;
  known.insert(known.end(), {"help", "version"});
  std::string &first = words[0];
  if (first == "help" || first == "version" || first == "-V") {
    bool isHelp = first == "help";
    if (isHelp && words.size() > 1 && !llvm::is_contained(names, words[1]))
      return refuse("'" + words[1] + "' behind help", suggest(words[1], names));
    if (words.size() > (isHelp ? 2 : 1))
      return refuse("'" + words.back() + "' behind " + first, "");
    first = isHelp ? "--help" : "--version";
    if (words.size() > 1)
      std::swap(words[0], words[1]);
    return true;
  }
  if (llvm::is_contained(names, first))
    return true;
  if (!isOption(first))
    return refuse("'" + first + "'", suggest(first, known));
  llvm::StringRef option = llvm::StringRef(first).split('=').first;
  auto has = [&](const CLI::App &one) {
    return llvm::is_contained(optionNames(one, true), option) ||
           llvm::is_contained(optionNames(one, false), option.take_front(2));
  };
  if (has(app))
    return true;
  std::vector<std::string> owners, options = optionNames(app, /*isLong=*/true);
  for (const CLI::App *sub : app.get_subcommands([](const CLI::App *) { return true; })) {
    if (has(*sub))
      owners.push_back(sub->get_name());
    for (std::string &name : optionNames(*sub, /*isLong=*/true))
      options.push_back(std::move(name));
  }
  auto command = llvm::find_if(
      words, [&](const std::string &word) { return llvm::is_contained(names, word); });
  std::string hint =
      owners.empty() ? suggest(option, options)
      : command != words.end()
          ? "an option stands behind its command: `stepc " + *command + " " + option.str() + " …`; "
          : "'" + option.str() + "' is an option of " + llvm::join(owners, ", ") +
                ", and stands behind the command; ";
  return refuse("the option '" + option.str() + "'", hint);
}

} // namespace

bool stepc::driver::parseCommandLine(int argc, char **argv, CommandLine &line, int &exitCode) {
  std::string version = std::string("stepc ") + kVersion;
  CLI::App app(version + ": a compiler for optimizer steps", "stepc");
  app.set_version_flag("--version", version + " (" + kVersionDetails + ")");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App *, const CLI::Error &) { return std::string(); });
  app.footer(
      "`stepc COMMAND --help`, or `stepc help COMMAND`, explains a command and shows examples. "
      "`stepc version` and -V say the version. - as a file is standard input or output.\n\n" +
      std::string(kExitCodes));
  defineCompile(app, line.compile);
  defineCheck(app, line.check);
  defineExplain(app, line.explain);
  defineSimulate(app, line.simulate);
  defineFormat(app, line.format);
  defineRun(app, line.run);
  defineManifest(app, line.manifest);
  defineProbe(app, line.probe);
  defineOptimizers(app, line.optimizers);

  exitCode = kSuccess;
  std::string name = "stepc";
  // If a command is misspelt, CLI11 would only say that a command is required.
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!takeCommand(app, words)) {
    exitCode = kUsageError;
    return false;
  }
  // Refuse empty values: they would be empty names, which messages cannot show.
  for (size_t i = 1; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    if (!word.empty() && !(word.starts_with("--") && word.find('=') + 1 == word.size()))
      continue;
    std::cerr << "stepc: error: expected a value behind '"
              << stepc::text::printable(word.empty() ? words[i - 1] : word.drop_back().str())
              << "', found an empty one\n";
    exitCode = kUsageError;
    return false;
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend())); // CLI11 takes them reversed
  } catch (const CLI::Success &request) {                              // help or version
    std::ostringstream text;
    app.exit(request, text, std::cerr);
    llvm::outs() << text.str(); // `finish` reports errors of this output
    return false;
  } catch (const CLI::ParseError &error) {
    std::string suggestion, ignored, message = tidy(error.what());
    for (const CLI::App *sub : app.get_subcommands()) {
      name += " " + sub->get_name();
      suggestion = suggestOption(*sub, words);
      // CLI11 would list unknown words from the last to the first, and only after a missing one.
      bool lacks = error.get_exit_code() == int(CLI::ExitCodes::RequiredError);
      if (std::string absent = refuseAbsence(*sub); lacks && !absent.empty())
        message = absent;
      if (sub->remaining_size() > 0 &&
          (lacks || error.get_exit_code() == int(CLI::ExitCodes::ExtrasError)))
        message = refuseWords(*sub, name, suggestion.empty() ? suggestion : ignored);
    }
    std::cerr << name << ": error: " << stepc::text::printable(message) << "\nhint: " << suggestion
              << "`" << name << " --help` shows how it is used\n";
    exitCode = kUsageError;
    return false;
  }
  using Command = CommandLine::Command;
  static const std::pair<const char *, Command> commands[] = {
      {"compile", Command::Compile},      {"check", Command::Check},
      {"explain", Command::Explain},      {"simulate", Command::Simulate},
      {"fmt", Command::Format},           {"run", Command::Run},
      {"manifest", Command::Manifest},    {"probe", Command::Probe},
      {"optimizers", Command::Optimizers}};
  for (auto [subcommand, command] : commands)
    if (app.got_subcommand(subcommand))
      line.command = command;
  return true;
}
