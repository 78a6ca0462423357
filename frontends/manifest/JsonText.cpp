#include "frontends/manifest/JsonText.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <functional>

namespace json = llvm::json;

namespace stepc::manifest {
namespace {

/// The callbacks of a scan. Each may be empty.
struct ScanEvents {
  /// Called for every value, with its JSON pointer and the offset of its first byte.
  std::function<void(const std::string &, size_t)> value;
  /// Called for a key that its object already has, with the key's pointer and offset.
  std::function<void(const std::string &, size_t)> doubledKey;
  /// Called with the offset of an escape that is half of a surrogate pair, which UTF-8 cannot spell.
  std::function<void(size_t)> halfCharacter;
};

/// The offset, from the opening quote, of the first escape that is half of a surrogate pair without the other
/// half: `\ud800`. Nothing if there is none.
std::optional<size_t> findHalfCharacter(llvm::StringRef quoted) {
  auto unitAt = [&](size_t at) -> unsigned {
    unsigned unit = 0;
    llvm::StringRef escape = quoted.substr(at, 6);
    return escape.size() == 6 && escape.starts_with("\\u") &&
                   !escape.drop_front(2).getAsInteger(16, unit)
               ? unit
               : 0;
  };
  for (size_t i = 0; i + 1 < quoted.size(); ++i) {
    if (quoted[i] != '\\')
      continue;
    unsigned unit = unitAt(i);
    if (unit < 0xD800 || unit > 0xDFFF) {
      ++i; // skip the escaped character
      continue;
    }
    unsigned second = unitAt(i + 6);
    if (unit >= 0xDC00 || second < 0xDC00 || second > 0xDFFF)
      return i;
    i += 11;
  }
  return std::nullopt;
}

/// One open array or object.
struct Frame {
  std::string pointer;
  bool isObject;
  bool expectKey;
  size_t index = 0;
  std::string key = {};
  llvm::StringSet<> keys = {};
};

/// Where a text exceeds a limit, and the limit as messages say it: "nests at most 64 levels".
struct Excess {
  size_t offset;
  std::string limit;
};

/// Walks over JSON text without judging its grammar, so that it is safe on any
/// bytes. Returns the first place that is beyond a limit, if there is one.
std::optional<Excess> scan(llvm::StringRef text, const ScanEvents &events) {
  std::vector<Frame> stack;
  size_t values = 0, objects = 0;
  auto childPointer = [&]() -> std::string {
    if (stack.empty())
      return "";
    const Frame &top = stack.back();
    return top.pointer + (top.isObject ? pointerToken(top.key) : "/" + std::to_string(top.index));
  };
  auto sawValue = [&](size_t offset) {
    ++values;
    if (events.value)
      events.value(childPointer(), offset);
  };
  size_t i = 0;
  while (i < text.size()) {
    if (values > kMaxJsonValues || objects > kMaxJsonObjects)
      return Excess{i - 1, values > kMaxJsonValues
                               ? "has at most " + std::to_string(kMaxJsonValues) + " values"
                               : "has at most " + std::to_string(kMaxJsonObjects) + " objects"};
    char c = text[i];
    size_t start = i++;
    if (llvm::isSpace(c) || c == ':')
      continue;
    if (c == '"') {
      while (i < text.size() && text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
      if (i >= text.size())
        return std::nullopt;
      ++i;
      if (events.halfCharacter)
        if (std::optional<size_t> half = findHalfCharacter(text.slice(start, i)))
          events.halfCharacter(start + *half);
      if (stack.empty() || !stack.back().expectKey) {
        sawValue(start);
        continue;
      }
      // Keys are compared as decoded: "a" and "\u0061" are one key.
      llvm::StringRef quoted = text.slice(start, i);
      Frame &top = stack.back();
      top.expectKey = false;
      if (llvm::Expected<json::Value> decoded = json::parse(quoted))
        top.key = decoded->getAsString().value_or("").str();
      else
        llvm::consumeError(decoded.takeError());
      if (!top.keys.insert(top.key).second && events.doubledKey)
        events.doubledKey(childPointer(), start);
    } else if (c == '{' || c == '[') {
      sawValue(start);
      if (stack.size() == kMaxJsonDepth)
        return Excess{start, "nests at most " + std::to_string(kMaxJsonDepth) + " levels"};
      objects += c == '{';
      std::string pointer = childPointer();
      stack.push_back({std::move(pointer), c == '{', c == '{'});
    } else if (c == '}' || c == ']') {
      if (!stack.empty())
        stack.pop_back();
    } else if (c == ',') {
      if (!stack.empty()) {
        stack.back().expectKey = stack.back().isObject;
        ++stack.back().index;
      }
    } else {
      sawValue(start);
      i = std::min(text.find_first_of(" \t\r\n,:[]{}\"", i), text.size());
    }
  }
  return std::nullopt;
}

} // namespace

std::string pointerToken(llvm::StringRef key) {
  std::string token = "/";
  for (char c : key) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return token;
}

std::string describe(const json::Value &value) {
  if (value.kind() == json::Value::Array)
    return "an array";
  if (value.kind() == json::Value::Object)
    return "an object";
  std::string text;
  llvm::raw_string_ostream(text) << value;
  if (text.size() <= 60)
    return text;
  size_t end = 57;
  while (end > 0 && (text[end] & 0xC0) == 0x80) // not inside a UTF-8 sequence
    --end;
  return text.substr(0, end) + "...";
}

std::string nearestHint(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> candidates) {
  llvm::StringRef nearest = text::nearestName(word, candidates);
  return nearest.empty() ? "" : (", did you mean '" + nearest + "'?").str();
}

std::pair<unsigned, unsigned> JsonText::lineAndColumn(size_t offset) {
  // Built once: a file may have as many errors as lines.
  if (lineStarts.empty()) {
    lineStarts.push_back(0);
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n')
        lineStarts.push_back(i + 1);
  }
  auto next = llvm::upper_bound(lineStarts, offset);
  return {next - lineStarts.begin(), offset - *std::prev(next) + 1};
}

void JsonText::errorAt(size_t offset, const llvm::Twine &pointer, const llvm::Twine &message) {
  auto [line, column] = lineAndColumn(offset);
  errors.add({file, line, column, pointer.str(), parameter, message.str()});
}

void JsonText::error(const llvm::Twine &pointer, const llvm::Twine &message) {
  errors.add({file, 0, 0, pointer.str(), parameter, message.str()});
}

void JsonText::mismatch(const llvm::Twine &pointer, const llvm::Twine &expected,
                        const json::Value &found) {
  error(pointer, "expected " + expected + ", found " + describe(found));
}

std::optional<json::Value> JsonText::parse() {
  size_t before = errors.size();
  ScanEvents events;
  std::vector<std::pair<std::string, size_t>> doubled;
  events.doubledKey = [&](const std::string &pointer, size_t offset) {
    doubled.emplace_back(pointer, offset);
  };
  std::optional<size_t> half;
  events.halfCharacter = [&](size_t offset) { half = half.value_or(offset); };
  if (std::optional<Excess> excess = scan(text, events)) {
    errorAt(excess->offset, "", "expected JSON that " + excess->limit + ", found more");
    return std::nullopt;
  }
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value) {
    // The position is private to llvm::json::ParseError: read it from
    // "[LINE:COLUMN, byte=B]: M".
    std::string message = llvm::toString(value.takeError());
    llvm::StringRef rest = message;
    unsigned line = 1, column = 1;
    if (rest.consume_front("[") && !rest.consumeInteger(10, line) && rest.consume_front(":") &&
        !rest.consumeInteger(10, column))
      rest = rest.split("]: ").second;
    std::string reason = rest.str();
    if (!reason.empty())
      reason[0] = llvm::toLower(reason[0]);
    errors.add({file, line, std::max(column, 1u), "", "",
                "expected JSON text, found a syntax error: " + reason});
    return std::nullopt;
  }
  if (half)
    errorAt(*half, "",
            "expected characters in JSON text, found '" + text.substr(*half, 6) + "', half of one");
  for (const auto &[pointer, offset] : doubled)
    errorAt(offset, pointer, "expected each key once, found it again in the same object");
  if (errors.size() != before)
    return std::nullopt;
  return std::move(*value);
}

const json::Object *JsonText::object(const json::Value &value, const llvm::Twine &pointer,
                                     llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> known) {
  const json::Object *object = value.getAsObject();
  if (!object) {
    mismatch(pointer, what, value);
    return nullptr;
  }
  for (const auto &[key, unused] : *object) {
    llvm::StringRef name = key;
    if (!llvm::is_contained(known, name))
      error(pointer + pointerToken(name), "expected a key of " + what + " (" +
                                              llvm::join(known, ", ") + "), found '" + name + "'" +
                                              nearestHint(name, known));
  }
  return object;
}

const json::Array *JsonText::array(const json::Value &value, const llvm::Twine &pointer,
                                   llvm::StringRef what) {
  const json::Array *array = value.getAsArray();
  if (!array)
    mismatch(pointer, what, value);
  return array;
}

std::optional<int64_t> JsonText::integer(const json::Value &value, const llvm::Twine &pointer,
                                         llvm::StringRef what, int64_t low, int64_t high) {
  std::optional<int64_t> number = value.getAsInteger();
  if (number && *number >= low && *number <= high)
    return number;
  mismatch(pointer, what, value);
  return std::nullopt;
}

std::optional<std::string> JsonText::name(const json::Value &value, const llvm::Twine &pointer,
                                          llvm::StringRef what) {
  std::optional<llvm::StringRef> string = value.getAsString();
  if (!string || string->empty()) {
    mismatch(pointer, what, value);
    return std::nullopt;
  }
  std::string wrong = text::checkName(*string, what);
  if (wrong.empty())
    return string->str();
  error(pointer, wrong);
  return std::nullopt;
}

const json::Value *JsonText::required(const json::Object &object, llvm::StringRef key,
                                      const llvm::Twine &pointer) {
  const json::Value *value = object.get(key);
  if (!value)
    error(pointer, "expected the key '" + key + "', found none");
  return value;
}

bool JsonText::read(llvm::function_ref<void(const json::Value &root)> root) {
  size_t before = errors.size();
  if (std::optional<json::Value> value = parse())
    root(*value);
  locateErrors();
  return errors.size() == before;
}

void JsonText::locateErrors() {
  llvm::MutableArrayRef<InputError> own =
      llvm::MutableArrayRef<InputError>(errors.get()).drop_front(firstError);
  if (own.empty())
    return;
  llvm::StringMap<size_t> wanted;
  for (const InputError &error : own)
    if (!error.line)
      wanted[error.pointer] = 0;
  ScanEvents events;
  events.value = [&](const std::string &pointer, size_t offset) {
    if (auto it = wanted.find(pointer); it != wanted.end())
      it->second = offset;
  };
  if (!wanted.empty())
    scan(text, events);
  for (InputError &error : own)
    if (!error.line)
      std::tie(error.line, error.column) = lineAndColumn(wanted[error.pointer]);
  // The pointer breaks ties, so that the order never depends on a hash table's.
  llvm::sort(own, [](const InputError &a, const InputError &b) {
    return std::tie(a.line, a.column, a.pointer, a.message) <
           std::tie(b.line, b.column, b.pointer, b.message);
  });
}

} // namespace stepc::manifest
