// Files that are read up to a bound, and files that are written whole or not at all.
//
// All errors are llvm::FileError: the place, and a message that begins in lower case.
#ifndef STEPC_FRONTENDS_TEXT_FILES_H
#define STEPC_FRONTENDS_TEXT_FILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace stepc::text {

/// An error that names the place. `message` reads after "PLACE: error: ".
llvm::Error fileError(const llvm::Twine &place, const llvm::Twine &message);
/// The system's reason as messages spell it: "no space left on device".
std::string reasonOf(std::error_code code);

/// A number of bytes as errors spell it: "64 MiB", or "100 bytes" if it is no whole number of MiB.
std::string sizeText(uint64_t bytes);

/// All bytes of a file, of a pipe or a device up to its end; "-" is standard input. `what` reads as in
/// "expected WHAT, found a folder". Errors: a folder, a file that cannot be read or has more than
/// `mostBytes`.
llvm::Expected<std::string> readFile(llvm::StringRef path, llvm::StringRef what,
                                     uint64_t mostBytes);

/// Writes `pieces` one after the other. A regular file is replaced in one step and keeps its mode and owner.
/// Its bytes are overwritten in place, once there is room for all of them, if a new file could not keep its
/// owner, its other names or its extended attributes. So they are if its folder cannot be written. A link is
/// followed; a pipe or a device gets the bytes directly. After an error the file is as it was, and nothing is
/// left beside it. Errors: a folder, a read-only file, and what the system refuses.
llvm::Error writeFile(llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> pieces);
/// The errors that writeFile would give before it writes a byte; leaves nothing behind.
llvm::Error checkPlace(llvm::StringRef path);

/// Writes a file of a temporary folder, which nobody else sees. It is gone after an error.
llvm::Error writeTemporary(llvm::StringRef path, llvm::StringRef bytes);
/// The system's reason why a file of that size has no room in a folder, or none. It tells a full disk from
/// other faults of a program that failed to write there.
std::error_code checkRoom(llvm::StringRef folder, uint64_t bytes);
/// Makes a file or a folder where temporary ones go (TMPDIR, or /tmp). Whoever asks removes it.
llvm::Expected<std::string> makeTemporaryFile(llvm::StringRef ending);
llvm::Expected<std::string> makeTemporaryFolder();

/// The path behind the links of its last component, whether or not there is a file.
std::string behindLinks(llvm::StringRef path);
/// Whether two paths are names of one regular file, or would be once it is written.
bool isSameFile(llvm::StringRef a, llvm::StringRef b);

} // namespace stepc::text

#endif // STEPC_FRONTENDS_TEXT_FILES_H
