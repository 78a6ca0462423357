//===- OtherOptions.cpp - Commands that compile nothing ---------------------===//
//
// This source has exceptions, as Options.cpp has.
//
//===----------------------------------------------------------------------===//

#include "tools/stepc/OtherOptions.h"

#include "tools/stepc/OptionChecks.h"

using namespace stepc::driver;

void stepc::driver::defineFormat(CLI::App &root, FormatCommand &command) {
  CLI::App *app = root.add_subcommand("fmt", "Format specifications, in place; comments stay");
  app->add_option("files", command.files,
                  "Specifications; - reads standard input and writes standard output")
      ->required()
      ->type_name("FILE");
  app->add_flag("--check", command.check, "Change nothing; exit status 1 if a file would change");
  app->footer("Examples:\n"
              "  stepc fmt muon.optim\n"
              "  stepc fmt --check examples/*.optim\n"
              "  stepc fmt - < muon.optim\n\n" +
              std::string(kExitCodes));
}

void stepc::driver::defineManifest(CLI::App &root, ManifestCommand &command) {
  CLI::App *app =
      root.add_subcommand("manifest", "Write a manifest from the headers of safetensors files");
  app->add_option(
         "tensors", command.tensors,
         "Safetensors files, or the index of a sharded model (model.safetensors.index.json)")
      ->required()
      ->type_name("IN.safetensors");
  app->add_option("--mesh", command.mesh, "Axes and sizes, outermost first")
      ->required()
      ->type_name("dp=2,tp=2");
  app->add_option("--place", command.place, "Placements, one per mesh axis; the last match holds")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("'PATTERN=S(0),R'");
  app->add_option(
         "--place-grad", command.placeGrad,
         "The gradients' placements, where they are not the parameters': P(sum) and P(avg) "
         "are contributions that the step adds up; the last match holds")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("'PATTERN=P(avg),R'");
  app->add_option("--batch", command.batch,
                  "Of matching parameters with three or more axes the leading ones are batch axes")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  app->add_option("--grad-dtype", command.gradDType, "The gradients' type: f32, bf16 or f16")
      ->check([](const std::string &text) { return checkOneOf(text, {"f32", "bf16", "f16"}); })
      ->type_name("DTYPE");
  app->add_option("-o,--output", command.output, "The manifest; - is standard output")
      ->required()
      ->type_name("M");
  app->footer(
      "Examples:\n"
      "  stepc manifest model.safetensors --mesh dp=2,tp=2 --place '*=S(0),R' "
      "--place '*.down.*=S(0),S(1)' -o model.json\n"
      "  stepc manifest moe.safetensors --mesh ep=4 --place '*=R' --place '*.experts.*=S(0)' "
      "--batch '*.experts.*' -o moe.json\n"
      "  stepc manifest model.safetensors.index.json --mesh dp=8 --place '*=S(0)' -o "
      "model.json\n\n" +
      std::string(kExitCodes));
}

void stepc::driver::defineProbe(CLI::App &root, ProbeCommand &command) {
  CLI::App *app = root.add_subcommand(
      "probe", "Measure the cluster that MPI's processes run on, for --cluster and manifests");
  app->add_option("-o,--output", command.output,
                  "The cluster (JSON), which rank 0 writes; - is standard output")
      ->required()
      ->type_name("FILE");
  app->add_option_function<std::vector<std::string>>(
         "--level",
         [&command](const std::vector<std::string> &list) {
           for (llvm::StringRef text : list) {
             auto [name, ranks] = text.rsplit('=');
             int64_t count = 0;
             ranks.getAsInteger(10, count);
             command.levels.emplace_back(name.str(), count);
           }
         },
         "Ranks of a domain of links, innermost first, in the place of hosts; the network "
         "between the last ones is added")
      ->check(checkLevel)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("NAME=RANKS");
  app->add_option("--threads", command.threads, "Threads of each rank's device (default 1)")
      ->check([](const std::string &text) { return checkCount(text, kMostThreads); })
      ->type_name("T");
  app->add_option("--samples", command.samples,
                  "Measure nothing: make the cluster of times that another program measured (JSON)")
      ->type_name("FILE");
  app->footer("Examples:\n"
              "  mpirun -np 16 stepc probe -o cluster.json\n"
              "  mpirun -np 16 stepc probe --level socket=4 --level node=8 --threads 6 "
              "-o cluster.json\n"
              "  stepc explain muon.optim -m model.json --cluster cluster.json\n\n" +
              std::string(kExitCodes));
}

void stepc::driver::defineOptimizers(CLI::App &root, OptimizersCommand &command) {
  CLI::App *app = root.add_subcommand(
      "optimizers", "List the optimizers that stepc brings, or print the file of one");
  app->add_option("name", command.name, "A file of the list, as soap or stepc/soap.optim")
      ->type_name("NAME");
  app->footer("Examples:\n"
              "  stepc optimizers soap > my_soap.optim\n"
              "  stepc optimizers\n\n" +
              std::string(kExitCodes));
}
