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

const stepc_library *compiled(const std::string &spec, const std::string &manifest) {
  static std::map<std::pair<std::string, std::string>, const stepc_library *> all;
  const stepc_library *&library = all[{spec, manifest}];
  if (library)
    return library;
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
  library = open(folder + "/lib" + spec.substr(from, spec.rfind('.') - from) + ".so");
  std::system(("rm -r " + folder + " " + folder + ".log").c_str());
  return library;
}

} // namespace stepc::test
