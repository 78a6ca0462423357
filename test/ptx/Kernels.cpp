//===- Kernels.cpp - Kernels of products to run ----------------------------===//

#include "test/ptx/Kernels.h"
#include "test/ptx/Error.h"

#include <cstdlib>
#include <fstream>

namespace stepc::ptx {
namespace {

Type typeCalled(const std::string &name) {
  if (name == "bf16")
    return Type::Bf16;
  if (name == "f16")
    return Type::F16;
  if (name == "f32")
    return Type::F32;
  fail("expected the type bf16, f16 or f32, found '", name, "'");
}

std::string contentOf(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    fail("cannot read ", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

Kernel kernelCalled(const std::vector<Kernel> &parsed, const std::string &name) {
  for (const Kernel &each : parsed)
    if (each.name == name)
      return each;
  fail("expected a kernel called '", name, "' among ", parsed.size());
}

ProductKernel readKernel(const std::string &description, const std::string &text) {
  ProductKernel made;
  std::istringstream words(description);
  bool hasAddendType = false;
  std::string entry;
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    std::string key = word.substr(0, equals),
                value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "name")
      made.name = value;
    else if (key == "file") // the caller has read it
      continue;
    else if (key == "entry")
      entry = value;
    else if (key == "shared")
      made.sharedBytes = uint32_t(std::stoul(value));
    else if (key == "lhs")
      made.isLhsTransposed = value == "m";
    else if (key == "rhs")
      made.isRhsTransposed = value == "k";
    else if (key == "symmetric")
      made.isSymmetric = value == "1";
    else if (key == "addend")
      made.hasAddend = value == "1";
    else if (key == "shift")
      made.hasShift = value == "1";
    else if (key == "half")
      made.hasHalfTiles = value == "1";
    else if (key == "in")
      made.in = made.addend = typeCalled(value);
    else if (key == "out")
      made.out = typeCalled(value);
    else if (key == "addend_type")
      made.addend = typeCalled(value), hasAddendType = true;
    else
      fail("expected a property of a kernel, found '", word, "'");
  }
  if (!hasAddendType)
    made.addend = made.in;
  made.text = text;
  made.program = decode(kernelCalled(parse(text), entry));
  return made;
}

const std::vector<ProductKernel> &kernels() {
  static const std::vector<ProductKernel> all = [] {
    std::vector<ProductKernel> all;
    const char *given = std::getenv("STEPC_PTX_KERNELS");
#ifdef STEPC_PTX_KERNELS
    if (!given)
      given = STEPC_PTX_KERNELS;
#endif
    if (!given || !*given)
      return all;
    std::string folder = given;
    std::istringstream lines(contentOf(folder + "/kernels.txt"));
    for (std::string line; std::getline(lines, line);) {
      size_t file = line.find("file=");
      if (file == std::string::npos)
        continue;
      std::string name = line.substr(file + 5, line.find(' ', file) - file - 5);
      all.push_back(readKernel(line, contentOf(folder + "/" + name)));
    }
    return all;
  }();
  return all;
}

} // namespace stepc::ptx
