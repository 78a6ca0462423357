//===- Compiled.cpp - Libraries that the stepc binary compiles -------------===//

#include "test/unit/library/Compiled.h"
#include "test/unit/library/World.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <unistd.h>

namespace stepc::test {

std::string inputFile(const std::string &name) {
  return STEPC_TEST_ROOT "/test/inputs/" + name + ".json";
}

namespace {

struct Compiled {
  const stepc_library *library = nullptr;
  std::vector<uint8_t> bytes;
};

const Compiled &compileOnce(const std::string &spec, const std::string &manifest) {
  static std::map<std::pair<std::string, std::string>, Compiled> all;
  Compiled &made = all[{spec, manifest}];
  if (made.library)
    return made;
  std::string folder = testing::TempDir() + "stepc-library-" + std::to_string(getpid()) + "-" +
                       std::to_string(all.size());
  std::string command = std::string(STEPC_TEST_STEPC) + " compile " + spec + " --manifest " +
                        manifest + " -o " + folder + " 2>" + folder + ".log";
  if (std::system(command.c_str())) {
    std::ifstream log(folder + ".log");
    ADD_FAILURE() << command << "\n" << std::string(std::istreambuf_iterator<char>(log), {});
    std::exit(1);
  }
  size_t from = spec.rfind('/') + 1;
  std::string path = folder + "/lib" + spec.substr(from, spec.rfind('.') - from) + ".so";
  std::ifstream file(path, std::ios::binary);
  made.bytes.assign(std::istreambuf_iterator<char>(file), {});
  made.library = open(path);
  std::system(("rm -r " + folder + " " + folder + ".log").c_str());
  return made;
}

} // namespace

const stepc_library *compiled(const std::string &spec, const std::string &manifest) {
  return compileOnce(spec, manifest).library;
}

const std::vector<uint8_t> &compiledBytes(const std::string &spec, const std::string &manifest) {
  return compileOnce(spec, manifest).bytes;
}

} // namespace stepc::test
