//===- MakeManifest.cpp - stepc manifest -----------------------------------===//

#include "frontends/manifest/MakeManifest.h"
#include "tools/stepc/Files.h"
#include "tools/stepc/Options.h"

#include "llvm/Support/Path.h"

using namespace stepc;
using namespace stepc::driver;

int driver::runManifest(const ManifestCommand &command) {
  Report report;
  manifest::ErrorList errors;
  auto fail = [&] {
    report.errors(errors);
    return errors.hasUsageErrors() ? kUsageError : kInputError;
  };
  auto file = manifest::SafetensorsFile::open(command.tensors, errors);
  if (!file)
    return fail();
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
  // A place that cannot be written to is the command line's matter, standard output that breaks is not.
  llvm::StringRef output = command.output, folder = llvm::sys::path::parent_path(output);
  if (output != "-" &&
      !canWrite(report, folder.empty() ? "." : folder, {llvm::sys::path::filename(output).str()}))
    return kInputError;
  return writeFile(report, output, manifest::writeManifest(*made)) ? kSuccess : kInternalError;
}
