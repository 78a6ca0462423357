// Files that are read up to a bound, and files that are written whole or not at all.
//
// All errors are llvm::FileError: the file's path, and a message that begins in lower case.
#ifndef STEPC_FRONTENDS_TEXT_FILES_H
#define STEPC_FRONTENDS_TEXT_FILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace stepc::text {

/// An error about the file `place`. `message` reads after "PLACE: error: ".
llvm::Error fileError(const llvm::Twine &place, const llvm::Twine &message);
/// The system's text for an error code, beginning in lower case: "no space left on device".
std::string reasonOf(std::error_code code);

/// A number of bytes as errors spell it: "64 MiB", or "100 bytes" if it is no whole number of MiB.
std::string sizeText(uint64_t bytes);

/// Returns all bytes of a file, a pipe or a device; "-" is standard input. `what` reads as in
/// "expected WHAT, found a directory". Fails for a folder, for a file that cannot be read, and for more
/// than `mostBytes` bytes.
llvm::Expected<std::string> readFile(llvm::StringRef path, llvm::StringRef what,
                                     uint64_t mostBytes);

/// Writes `pieces` one after the other. A new file with the same mode and owner replaces a regular file by a
/// rename. If a new file could not keep the owner, hard links or extended attributes, the old bytes are
/// overwritten instead, once the disk has room. They are overwritten, too, if the folder cannot be written.
/// Links are followed. A pipe or a device gets the bytes directly. After an error the file is as it was, and
/// no new file is left beside it. Fails for a folder, for a read-only file, and if the system refuses.
llvm::Error writeFile(llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> pieces);
/// Returns the error that writeFile would return before it writes a byte. Leaves no file behind.
llvm::Error checkPlace(llvm::StringRef path);

/// Writes a file in a temporary folder that no other program uses. Removes the file after an error.
llvm::Error writeTemporary(llvm::StringRef path, llvm::StringRef bytes);
/// Returns the system's error if a folder cannot hold a new file of `bytes` bytes. Callers use it after a
/// program failed to write there, to tell a full disk from other faults.
std::error_code checkRoom(llvm::StringRef folder, uint64_t bytes);
/// Makes a file or a folder among the temporary ones (TMPDIR, or /tmp). The caller must remove it.
llvm::Expected<std::string> makeTemporaryFile(llvm::StringRef ending);
llvm::Expected<std::string> makeTemporaryFolder();

/// Follows the links of a path's last component. The file at the end need not exist.
std::string behindLinks(llvm::StringRef path);
/// Whether two paths name one regular file, or would name one file once it is written.
bool isSameFile(llvm::StringRef a, llvm::StringRef b);

} // namespace stepc::text

#endif // STEPC_FRONTENDS_TEXT_FILES_H
