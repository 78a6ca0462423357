//===- Text.cpp - The parser of PTX ----------------------------------------===//

#include "test/ptx/Text.h"
#include "test/ptx/Error.h"

#include <cctype>
#include <optional>

namespace stepc::ptx {
namespace {

struct Token {
  std::string text; ///< empty at the end
  int line = 0;
  size_t begin = 0, end = 0;
};

bool isWord(char c) {
  return std::isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (c == '\n')
      ++line;
    if (std::isspace((unsigned char)c)) {
      ++i;
    } else if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      size_t end = text.find("*/", i);
      if (end == std::string_view::npos)
        fail("line ", line, ": expected the end of a comment");
      for (; i < end + 2; ++i)
        line += text[i] == '\n';
    } else {
      size_t begin = i;
      if (c == '"') {
        i = text.find('"', i + 1);
        if (i == std::string_view::npos)
          fail("line ", line, ": expected the end of a string");
        ++i;
      } else if (isWord(c)) {
        // Suffixes and scopes (`shared::cta`) belong to a word.
        while (i < text.size() && (isWord(text[i]) || text.substr(i, 2) == "::"))
          i += text[i] == ':' ? 2 : 1;
      } else {
        ++i;
      }
      tokens.push_back({std::string(text.substr(begin, i - begin)), line, begin, i});
    }
  }
  tokens.push_back({"", line, text.size(), text.size()});
  return tokens;
}

/// Bytes of a type as declarations write it, or nothing.
std::optional<uint32_t> bytesOf(std::string_view type) {
  if (type == ".pred")
    return 0;
  if (type.size() < 3 || type[0] != '.' ||
      std::string_view("busf").find(type[1]) == std::string_view::npos)
    return {};
  std::string_view bits = type.substr(2);
  if (bits == "8" || bits == "16" || bits == "32" || bits == "64")
    return uint32_t(std::stoi(std::string(bits))) / 8;
  return {};
}

class Parser {
public:
  explicit Parser(std::string_view text) : text(text), tokens(tokenize(text)) {}

  std::vector<Kernel> module() {
    while (!at("")) {
      if (at(".version") || at(".target") || at(".address_size")) {
        for (int line = here().line; here().line == line && !at("");)
          ++next;
      } else if (at(".file") || at(".section")) {
        fail("line ", here().line, ": ", here().text, " is not modelled");
      } else {
        declaration();
      }
    }
    for (Kernel &kernel : kernels) {
      kernel.sharedArrays = shared;
      kernel.globalArrays = global;
    }
    return std::move(kernels);
  }

private:
  std::string_view text;
  std::vector<Token> tokens;
  size_t next = 0;
  std::vector<Kernel> kernels;
  std::vector<SharedArray> shared;
  std::vector<GlobalArray> global;
  Kernel *kernel = nullptr;
  /// Names of registers and labels that each open block declares.
  struct Scope {
    std::map<std::string, int> registers, labels;
    std::vector<std::pair<size_t, std::string>> branches;
  };
  std::vector<Scope> scopes;

  const Token &here() const { return tokens[next]; }
  bool at(std::string_view word) const { return here().text == word; }
  Token take() {
    if (at(""))
      fail("line ", here().line, ": expected more, found the end of the text");
    return tokens[next++];
  }
  bool accept(std::string_view word) {
    if (!at(word) || word.empty())
      return false;
    ++next;
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word))
      fail("line ", here().line, ": expected '", word, "', found '", here().text, "'");
  }
  int64_t number() {
    bool isNegative = accept("-");
    Token token = take();
    try {
      size_t used = 0;
      uint64_t value = std::stoull(token.text, &used, 0);
      if (used == token.text.size() || token.text.substr(used) == "U")
        return int64_t(isNegative ? 0 - value : value);
    } catch (const std::exception &) {
    }
    fail("line ", token.line, ": expected a whole number, found '", token.text, "'");
  }

  void declaration() {
    int line = here().line;
    while (accept(".visible") || accept(".extern") || accept(".weak"))
      ;
    if (accept(".entry"))
      return function();
    if (accept(".global"))
      return globalArray();
    if (!accept(".shared"))
      fail("line ", line, ": expected a kernel or memory of the block, found '", here().text,
           "', which is not modelled");
    sharedArray();
  }

  /// The declaration of an array behind its space. An array without a size has no bytes.
  struct Declared {
    std::string name;
    uint32_t alignment, elementBytes, bytes;
  };
  Declared declaration(uint32_t alignment) {
    if (accept(".align"))
      alignment = uint32_t(number());
    Token type = take();
    auto bytes = bytesOf(type.text);
    if (!bytes)
      fail("line ", type.line, ": expected a type, found '", type.text, "'");
    Declared made{take().text, alignment, uint32_t(*bytes), uint32_t(*bytes)};
    if (accept("[")) {
      made.bytes = at("]") ? 0 : made.bytes * uint32_t(number());
      expect("]");
    }
    return made;
  }

  void sharedArray() {
    SharedArray array;
    Declared declared = declaration(array.alignment);
    array.alignment = declared.alignment;
    array.bytes = declared.bytes;
    array.name = declared.name;
    expect(";");
    shared.push_back(array);
  }

  void globalArray() {
    GlobalArray array;
    Declared declared = declaration(1);
    if (declared.bytes == 0)
      fail("expected a size of the array '", declared.name, "' in global memory, found none");
    array.bytes = declared.bytes;
    array.name = declared.name;
    if (accept("=")) {
      bool isList = accept("{");
      do {
        uint64_t value = uint64_t(number());
        for (uint32_t i = 0; i < declared.elementBytes; ++i)
          array.initial.push_back(uint8_t(value >> 8 * i));
      } while (isList && accept(","));
      if (isList)
        expect("}");
    }
    expect(";");
    global.push_back(array);
  }

  void parameters() {
    expect("(");
    while (!accept(")")) {
      expect(".param");
      uint32_t alignment = 0, bytes = 0;
      Parameter parameter;
      for (;;) {
        Token token = take();
        if (token.text == ".align")
          alignment = std::max(alignment, uint32_t(number()));
        else if (auto size = bytesOf(token.text))
          bytes = *size;
        else if (token.text[0] != '.') {
          parameter.name = token.text;
          break;
        }
      }
      uint32_t natural = bytes;
      if (accept("[")) {
        bytes *= uint32_t(number());
        expect("]");
      } else {
        // `.ptr .align 1` is about what the pointer points to.
        alignment = natural;
      }
      alignment = std::max(alignment, natural);
      parameter.offset = (kernel->parameterBytes + alignment - 1) / alignment * alignment;
      parameter.bytes = bytes;
      kernel->parameterBytes = parameter.offset + bytes;
      kernel->parameters.push_back(parameter);
      accept(",");
    }
  }

  void function() {
    kernel = &kernels.emplace_back();
    kernel->name = take().text;
    parameters();
    while (!at("{")) {
      Token token = take();
      // A launch of fewer threads than .maxntid says is not modelled.
      if (token.text == ".reqntid" || token.text == ".maxntid") {
        kernel->threads = 1;
        do
          kernel->threads *= uint32_t(number());
        while (accept(","));
      } else if (token.text == ".reqnctapercluster") {
        kernel->clusterBlocks = 1;
        do
          kernel->clusterBlocks *= uint32_t(number());
        while (accept(","));
      } else if (token.text == ".minnctapersm" || token.text == ".maxntid" ||
                 token.text == ".maxnreg") {
        do
          number();
        while (accept(","));
      } else if (token.text != ".explicitcluster") {
        fail("line ", token.line, ": a kernel's directive '", token.text, "' is not modelled");
      }
    }
    take();
    block();
  }

  /// What stands between braces, the closing one included.
  void block() {
    scopes.emplace_back();
    while (!accept("}")) {
      if (accept("{"))
        block();
      else if (at(".reg"))
        registers();
      else if (accept(".shared"))
        sharedArray();
      else if (accept(".pragma")) {
        take();
        expect(";");
      } else if (at(".loc")) {
        for (int line = here().line; here().line == line;)
          ++next;
      } else if (tokens[next + 1].text == ":" && here().text[0] != '@') {
        auto [_, isNew] = scopes.back().labels.emplace(here().text, int(kernel->statements.size()));
        if (!isNew)
          fail("line ", here().line, ": the label ", here().text, " stands twice in a block");
        next += 2;
      } else if (!accept(";")) {
        statement();
      }
    }
    // A branch goes to the label of the innermost block that has it.
    Scope scope = std::move(scopes.back());
    scopes.pop_back();
    for (auto &[number, name] : scope.branches) {
      auto label = scope.labels.find(name);
      if (label != scope.labels.end())
        kernel->statements[number].target = label->second;
      else if (scopes.empty())
        fail("line ", kernel->statements[number].line, ": no label ", name);
      else
        scopes.back().branches.emplace_back(number, name);
    }
  }

  void registers() {
    take();
    Token type = take();
    auto bytes = bytesOf(type.text);
    if (!bytes || *bytes == 1)
      fail("line ", type.line, ": registers of the type '", type.text, "' are not modelled");
    RegisterKind kind = *bytes == 0   ? RegisterKind::Predicate
                        : *bytes == 2 ? RegisterKind::Bits16
                        : *bytes == 4 ? RegisterKind::Bits32
                                      : RegisterKind::Bits64;
    do {
      Token name = take();
      auto add = [&](const std::string &each) {
        scopes.back().registers[each] = int(kernel->registers.size());
        kernel->registers.push_back({each, kind});
      };
      if (accept("<")) {
        for (int64_t i = 0, count = number(); i < count; ++i)
          add(name.text + std::to_string(i));
        expect(">");
      } else {
        add(name.text);
      }
    } while (accept(","));
    expect(";");
  }

  int registerCalled(const std::string &name) const {
    for (size_t i = scopes.size(); i-- > 0;)
      if (auto found = scopes[i].registers.find(name); found != scopes[i].registers.end())
        return found->second;
    return -1;
  }

  Operand simple() {
    Operand operand;
    const Token token = here();
    if (at("-") || std::isdigit((unsigned char)token.text[0])) {
      operand.kind = Operand::Kind::Immediate;
      std::string prefix = token.text.substr(0, 2);
      if (prefix == "0f" || prefix == "0F" || prefix == "0d" || prefix == "0D") {
        ++next;
        operand.value = int64_t(std::stoull(token.text.substr(2), nullptr, 16));
      } else {
        operand.value = number();
      }
    } else if (token.text == "_") {
      ++next;
    } else if (isWord(token.text[0])) {
      ++next;
      operand.index = registerCalled(token.text);
      operand.kind = operand.index >= 0 ? Operand::Kind::Register : Operand::Kind::Name;
      operand.name = token.text;
    } else {
      fail("line ", token.line, ": expected an operand, found '", token.text, "'");
    }
    return operand;
  }

  Operand operand() {
    Operand result;
    if (accept("{")) {
      result.kind = Operand::Kind::Vector;
      do
        result.parts.push_back(simple());
      while (accept(","));
      expect("}");
      return result;
    }
    if (accept("[")) {
      result.kind = Operand::Kind::Address;
      result.parts.push_back(simple());
      if (accept("+"))
        result.value = number();
      else if (at("-"))
        result.value = number();
      if (accept(","))
        result.parts.push_back(operand());
      expect("]");
      return result;
    }
    result = simple();
    if (accept("+")) {
      if (result.kind != Operand::Kind::Name)
        fail("line ", here().line, ": expected a name before '+'");
      result.value = number();
    }
    if (accept("|")) {
      Operand pair;
      pair.kind = Operand::Kind::Pair;
      pair.parts = {result, simple()};
      return pair;
    }
    return result;
  }

  void statement() {
    Statement statement;
    statement.line = here().line;
    size_t begin = here().begin;
    if (accept("@")) {
      statement.isGuardNegated = accept("!");
      Token guard = take();
      statement.guard = registerCalled(guard.text);
      if (statement.guard < 0 || kernel->registers[statement.guard].kind != RegisterKind::Predicate)
        fail("line ", guard.line, ": expected a predicate, found '", guard.text, "'");
    }
    statement.opcode = take().text;
    bool isBranch = statement.opcode == "bra" || statement.opcode == "bra.uni";
    if (isBranch) {
      scopes.back().branches.emplace_back(kernel->statements.size(), take().text);
    } else if (!at(";")) {
      do
        statement.operands.push_back(operand());
      while (accept(","));
    }
    statement.text = text.substr(begin, std::min<size_t>(here().begin - begin, 200));
    expect(";");
    kernel->statements.push_back(std::move(statement));
  }
};

} // namespace

std::vector<Kernel> parse(std::string_view text) { return Parser(text).module(); }

} // namespace stepc::ptx
