// Errors in files and options that a user wrote, and the list that collects
// them.

#ifndef STEPC_FRONTENDS_MANIFEST_INPUTERROR_H
#define STEPC_FRONTENDS_MANIFEST_INPUTERROR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>
#include <vector>

namespace stepc::manifest {

/// A number as errors spell it.
inline std::string number(int64_t value) { return std::to_string(value); }

/// One error. `message` is lower case without a full stop: expectation, then
/// what was found.
struct InputError {
  /// A file name, or the option that holds the bad value ("--place 'w=Q'").
  std::string file;
  /// 1-based position of the bad value in the file; 0 if it has none.
  unsigned line = 0;
  unsigned column = 0;
  /// RFC 6901 pointer of the bad value, "" for the whole document or for
  /// anything but JSON.
  std::string pointer;
  /// The parameter or tensor that the error is about, "" if it is about none.
  std::string parameter;
  std::string message;
  /// True if the command line is wrong, false if a file is.
  bool isUsage = false;

  /// "FILE[:LINE:COLUMN]: [POINTER: ]MESSAGE[ (parameter 'NAME')]", on one line that a terminal only shows
  /// (text::printableName).
  std::string str() const;
  bool operator==(const InputError &) const = default;
};

/// Collects the errors of one reader, which goes on after an error to find
/// more.
class ErrorList {
public:
  void add(const llvm::Twine &file, const llvm::Twine &message, llvm::StringRef parameter = "") {
    errors.push_back({file.str(), 0, 0, "", parameter.str(), message.str()});
  }
  /// An error in the command line's options.
  void addUsage(const llvm::Twine &place, const llvm::Twine &message,
                llvm::StringRef parameter = "") {
    add(place, message, parameter);
    errors.back().isUsage = true;
  }
  void add(InputError error) { errors.push_back(std::move(error)); }

  bool hasUsageErrors() const {
    for (const InputError &error : errors)
      if (error.isUsage)
        return true;
    return false;
  }
  bool empty() const { return errors.empty(); }
  size_t size() const { return errors.size(); }
  std::vector<InputError> &get() { return errors; }
  const std::vector<InputError> &get() const { return errors; }
  /// All errors, one a line, each line ended by '\n'.
  std::string str() const;

private:
  std::vector<InputError> errors;
};

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_INPUTERROR_H
