// Reads JSON texts, and gives every error a line and a column.
//
// llvm::json recurses once per nesting level, keeps one of two equal keys
// silently, and forgets the position of a value. A scan over the text closes
// these three gaps.

#ifndef STEPC_FRONTENDS_MANIFEST_JSONTEXT_H
#define STEPC_FRONTENDS_MANIFEST_JSONTEXT_H

#include "frontends/manifest/InputError.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <optional>

namespace stepc::manifest {

/// Arrays and objects may nest this deep; deeper text is an error, not a stack
/// overflow.
inline constexpr unsigned kMaxJsonDepth = 64;
/// The most values and objects of one text. A text with more is refused before it is parsed: a few
/// bytes of text become up to 40 bytes of a value, and 4 KiB of an object.
inline constexpr size_t kMaxJsonValues = size_t(1) << 25, kMaxJsonObjects = size_t(1) << 20;

/// `key` as one RFC 6901 reference token, with its leading '/'.
std::string pointerToken(llvm::StringRef key);

/// A short JSON text of `value` for "found ...": scalars as written, cut at 60
/// bytes; "an array" and "an object" for the rest.
std::string describe(const llvm::json::Value &value);

/// ", did you mean 'X'?" for the candidate nearest to `word`, or "" if none is near.
std::string nearestHint(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> candidates);

/// Typed access to one JSON text. A getter that fails reports an error at its
/// JSON pointer, and returns null or nothing.
class JsonText {
public:
  JsonText(llvm::StringRef text, llvm::StringRef file, ErrorList &errors)
      : text(text), file(file), errors(errors) {}

  /// Parses the text and calls `root` if it is JSON. Then gives the reported errors their lines and columns,
  /// and sorts them by position. Returns true if there was no error. Call it once.
  bool read(llvm::function_ref<void(const llvm::json::Value &root)> root);

  void error(const llvm::Twine &pointer, const llvm::Twine &message);
  /// "expected EXPECTED, found VALUE".
  void mismatch(const llvm::Twine &pointer, const llvm::Twine &expected,
                const llvm::json::Value &found);
  /// Sets the parameter that later errors name; "" for none.
  void setParameter(llvm::StringRef name) { parameter = name.str(); }

  /// `value` as an object. Keys that are not in `known` are errors.
  const llvm::json::Object *object(const llvm::json::Value &value, const llvm::Twine &pointer,
                                   llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known);
  const llvm::json::Array *array(const llvm::json::Value &value, const llvm::Twine &pointer,
                                 llvm::StringRef what);
  /// An integer in [low, high]; `what` reads as in "expected WHAT, found 2.5".
  std::optional<int64_t> integer(const llvm::json::Value &value, const llvm::Twine &pointer,
                                 llvm::StringRef what, int64_t low, int64_t high);
  /// A string that is not empty and that text::checkName accepts.
  std::optional<std::string> name(const llvm::json::Value &value, const llvm::Twine &pointer,
                                  llvm::StringRef what);
  /// The value of a key. A missing key is an error.
  const llvm::json::Value *required(const llvm::json::Object &object, llvm::StringRef key,
                                    const llvm::Twine &pointer);

private:
  /// Parses the text. Syntax errors, excess depth and doubled keys are reported with line and column. Returns
  /// nothing after an error.
  std::optional<llvm::json::Value> parse();
  /// Gives the errors reported through this object their lines and columns and
  /// sorts them by position.
  void locateErrors();
  void errorAt(size_t offset, const llvm::Twine &pointer, const llvm::Twine &message);

  /// 1-based line and column of a byte.
  std::pair<unsigned, unsigned> lineAndColumn(size_t offset);

  llvm::StringRef text;
  std::vector<size_t> lineStarts;
  std::string file;
  std::string parameter;
  ErrorList &errors;
  /// Errors before this index came from elsewhere and stay as they are.
  size_t firstError = errors.size();
};

} // namespace stepc::manifest

#endif // STEPC_FRONTENDS_MANIFEST_JSONTEXT_H
