//===- LibraryFile.h - Whether a library's file is whole ---------*- C++ -*-===//
//
// The system's loader maps a library without looking whether its file is whole: a truncated file ends the
// process later. So the compiler appends a checksum to the file, and whoever opens a library compares it
// first. It is 32 bytes after the last section: 16 bytes of text, the size of the file before them and
// the CRC-32 of these bytes, both as 8 bytes, little-endian. frontends/python/stepc/_file.py reads it.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_CODEGEN_LIBRARYFILE_H
#define STEPC_PASSES_CODEGEN_LIBRARYFILE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace stepc::codegen {

/// The checksum to append to a library of these bytes.
std::string footerOf(llvm::StringRef bytes);

/// Checks that the bytes of a library's file are those that the compiler wrote. Returns an empty text, or one
/// that says what is wrong. A file may lack the checksum because another linker wrote it or a tool such as
/// strip removed it. Such a file is only compared with its own headers.
std::string checkLibraryFile(llvm::StringRef bytes);

} // namespace stepc::codegen

#endif
