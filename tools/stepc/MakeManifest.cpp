//===- MakeManifest.cpp - stepc manifest -----------------------------------===//

#include "frontends/manifest/MakeManifest.h"
#include "tools/stepc/Files.h"
#include "tools/stepc/Options.h"

using namespace stepc;
using namespace stepc::driver;

int driver::runManifest(const ManifestCommand &command) {
  Report report;
  manifest::ErrorList errors;
  auto fail = [&] {
    report.errors(errors);
    return errors.hasUsageErrors() ? kUsageError : kInputError;
  };
  using manifest::SafetensorsFile;
  auto file = SafetensorsFile::open(command.tensors, SafetensorsFile::Read::Headers, errors);
  if (!file)
    return fail();
  std::vector<NamedFile> inputs;
  for (const std::string &input : file->files())
    inputs.push_back({"stepc manifest", input});
  if (!areApart(report, {{"-o", command.output}}, inputs))
    return kUsageError;
  manifest::MakeManifestOptions options;
  options.mesh = command.mesh;
  options.place = command.place;
  options.placeGrad = command.placeGrad;
  options.batch = command.batch;
  if (!command.gradDType.empty())
    options.gradDType = manifest::parseDType(command.gradDType);
  auto made = manifest::makeManifest(*file, options, errors);
  if (!made)
    return fail();
  return canWriteFile(report, "-o", command.output) &&
                 writeFile(report, command.output, {manifest::writeManifest(*made)})
             ? kSuccess
             : kInputError;
}
