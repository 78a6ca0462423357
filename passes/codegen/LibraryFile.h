//===- LibraryFile.h - Whether a library's file is whole ---------*- C++ -*-===//
//
// The system's loader maps a library without looking whether its file is whole: a truncated file ends the
// process later. So the compiler appends a checksum to the file, and all code that opens a library compares
// it first. The checksum has 32 bytes, after the last section. These are 16 bytes of text, then the size and
// the CRC-32 of the file without the checksum, both as 8 bytes, little-endian.
// frontends/python/stepc/_file.py reads the checksum.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_CODEGEN_LIBRARYFILE_H
#define STEPC_PASSES_CODEGEN_LIBRARYFILE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace stepc::codegen {

/// The checksum to append to a library of these bytes.
std::string footerOf(llvm::StringRef bytes);

/// Checks that the bytes of a library's file are those that the compiler wrote. Returns an empty text, or a
/// text that says what is wrong. A file may lack the checksum, because another linker wrote the file or a
/// tool (strip) removed the checksum. Without a checksum only the headers are compared with the size of the
/// file.
std::string checkLibraryFile(llvm::StringRef bytes);

} // namespace stepc::codegen

#endif
