//===- Snippet.cpp - Kernels written by hand -------------------------------===//

#include "test/ptx/Snippet.h"

#include <cstring>

namespace stepc::ptx {

std::string Snippet::text() const {
  std::ostringstream text;
  text
      << ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];"
      << declarations << "\n"
      << ".visible .entry snippet(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 in)\n"
      << ".reqntid " << threads << "\n.reqnctapercluster " << clusterBlocks << ", 1, 1\n"
      << "{ .reg .pred %p<16>; .reg .b16 %rs<64>; .reg .b32 %r<256>; .reg .b64 %rd<64>;\n"
      << "mov.u32 %r1, %tid.x; setp.eq.s32 %p1, %r1, 0;\nld.param.b64 %rd0, [out];\n"
      << body << "\nret;\n}\n";
  return text.str();
}

std::vector<uint8_t> Snippet::run() const {
  Machine machine(seed);
  machine.mostInstructions = mostInstructions;
  uint64_t inAddress = machine.memory.allocate("in", in.data(), in.size(), false);
  uint64_t outAddress = machine.memory.allocate("out", nullptr, outBytes, true);
  auto kernels = parse(text());
  Program program = decode(kernels.at(0));
  Launch launch;
  launch.program = &program;
  launch.clusters = clusters;
  launch.dynamicBytes = 16384;
  launch.parameters.resize(program.kernel.parameterBytes);
  if (map) {
    TensorMap made = *map;
    made.address = isMapOfOut ? outAddress : inAddress;
    MapBytes bytes = encode(made);
    std::memcpy(launch.parameters.data(), bytes.data(), bytes.size());
  }
  std::memcpy(&launch.parameters[128], &outAddress, 8);
  std::memcpy(&launch.parameters[136], &inAddress, 8);
  machine.run(launch);
  return machine.memory.at(outAddress).bytes;
}

std::string Snippet::error() const {
  try {
    run();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

std::string Snippet::errorOfSeeds(uint64_t count) const {
  Snippet each = *this;
  for (each.seed = 0; each.seed < count; ++each.seed)
    if (std::string found = each.error(); !found.empty())
      return found;
  return "";
}

std::vector<uint32_t> words(const std::vector<uint8_t> &bytes) {
  std::vector<uint32_t> made(bytes.size() / 4);
  std::memcpy(made.data(), bytes.data(), made.size() * 4);
  return made;
}

TensorMap planarMap(uint32_t rows, uint32_t columns, uint32_t boxRows) {
  TensorMap map;
  map.rank = 2;
  map.dimensions = {columns, rows};
  map.strides = {uint64_t(columns) * 2};
  map.box = {64, boxRows};
  return map;
}

std::string barrierText(uint32_t count) {
  return "mov.b32 %r9, " + std::to_string(count) +
         ";\n@%p1 mbarrier.init.shared.b64 [smem+16000], %r9;\n@%p1 "
         "fence.mbarrier_init.release.cluster;\n"
         "bar.warp.sync -1;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
}

std::string waitText(uint32_t parity) {
  return "{ .reg .pred DONE; mbarrier.try_wait.parity.shared.b64 DONE, [smem+16000], " +
         std::to_string(parity) + "; }\n";
}

} // namespace stepc::ptx
