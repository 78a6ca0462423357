//===- Kernels.cpp - Kernels of products to run ----------------------------===//

#include "test/ptx/Kernels.h"
#include "test/ptx/Error.h"

#include <cstdlib>
#include <fstream>

namespace stepc::ptx {
namespace {

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
  std::map<std::string, std::string> of;
  std::istringstream words(description);
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    if (equals == std::string::npos)
      fail("expected KEY=VALUE in the description of a kernel, found '", word, "'");
    of[word.substr(0, equals)] = word.substr(equals + 1);
  }
  auto take = [&](const char *key) {
    auto found = of.find(key);
    if (found == of.end())
      fail("expected ", key, " in the description of a kernel, found '", description, "'");
    std::string value = found->second;
    of.erase(found);
    return value;
  };
  ProductKernel made;
  take("file"); // the caller has read it
  made.name = take("entry");
  made.sharedBytes = uint32_t(std::stoul(take("shared")));
  made.form.transposeLhs = take("transpose_lhs") == "1";
  made.form.transposeRhs = take("transpose_rhs") == "1";
  made.form.symmetric = take("symmetric") == "1";
  auto takeType = [&](const char *key) {
    std::string name = take(key);
    return name == "f32" ? Type::F32 : name == "f16" ? Type::F16 : Type::BF16;
  };
  made.form.lhs = made.form.rhs = takeType("type");
  made.form.out = takeType("result");
  if (!of.empty())
    fail("expected no property of a kernel called '", of.begin()->first, "'");
  made.text = text;
  made.program = decode(kernelCalled(parse(text), made.name));
  return made;
}

const std::vector<ProductKernel> &kernels() {
  static const std::vector<ProductKernel> all = [] {
    std::vector<ProductKernel> all;
    const char *given = std::getenv("STEPC_PTX_KERNELS");
    std::string folder = given && *given ? given : STEPC_PTX_KERNELS_OF_BUILD;
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
