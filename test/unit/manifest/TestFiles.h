// Small files for the tests of this folder.

#ifndef STEPC_TEST_UNIT_MANIFEST_TESTFILES_H
#define STEPC_TEST_UNIT_MANIFEST_TESTFILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <memory>
#include <string>

/// The bytes of a safetensors file with that header and zeros for data.
inline std::string safetensorsBytes(const std::string &header, size_t dataBytes) {
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  return std::string(length, 8) + header + std::string(dataBytes, '\0');
}

inline std::unique_ptr<llvm::MemoryBuffer> fileOf(const std::string &header, size_t dataBytes) {
  return llvm::MemoryBuffer::getMemBufferCopy(safetensorsBytes(header, dataBytes));
}

inline std::string tempPath(const std::string &name) {
  return testing::TempDir() + "stepc-" + name;
}

template <typename T, size_t N> llvm::ArrayRef<uint8_t> bytesOf(const T (&values)[N]) {
  return {reinterpret_cast<const uint8_t *>(values), sizeof(values)};
}

/// One header entry; `*offset` moves on by the entry's bytes.
inline std::string entry(const std::string &name, const std::string &dtype,
                         const std::string &shape, size_t bytes, size_t *offset) {
  std::string text = "\"" + name + "\": {\"dtype\": \"" + dtype + "\", \"shape\": " + shape +
                     ", \"data_offsets\": [" + std::to_string(*offset) + ", " +
                     std::to_string(*offset + bytes) + "]}";
  *offset += bytes;
  return text;
}

#endif // STEPC_TEST_UNIT_MANIFEST_TESTFILES_H
