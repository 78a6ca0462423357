//===- Grammar.h - The documented grammar, executable -----------*- C++ -*-===//
//
// Reads the EBNF of docs/language.md, derives random sentences from it, and
// decides whether a token sequence is one. It shares no code with the parser,
// so the two can be held against each other.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_UNIT_LANGUAGE_GRAMMAR_H
#define STEPC_TEST_UNIT_LANGUAGE_GRAMMAR_H

#include "frontends/language/Lexer.h"
#include "llvm/ADT/StringExtras.h"
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace stepc::lang::test {

class Grammar {
public:
  explicit Grammar(const std::string &ebnf) : text(ebnf) {
    for (skip(); position < text.size(); skip()) {
      std::string name = word();
      expect('=');
      rules[name] = alternatives();
      expect(';');
    }
  }

  /// The quoted terminals that are words.
  std::set<std::string> words() const { return wordTerminals; }
  /// Names on the right-hand side that no rule defines, tokens aside.
  std::set<std::string> undefined() const {
    std::set<std::string> missing;
    for (const std::string &name : used)
      if (!rules.count(name) && name != "NAME" && name != "NUMBER" && name != "STRING")
        missing.insert(name);
    return missing;
  }
  std::set<std::string> unused() const {
    std::set<std::string> result;
    for (const auto &[name, rule] : rules)
      if (!used.count(name) && name != "file")
        result.insert(name);
    return result;
  }

  /// A random sentence of `file`; `pick(n)` draws a number below n.
  std::string sentence(const std::function<unsigned(unsigned)> &pick) const {
    std::string result;
    derive(*rules.at("file"), pick, 0, result);
    return result;
  }

  bool accepts(const Source &source, const TokenStream &stream) const {
    Matcher matcher{*this, source, stream.tokens, {}};
    size_t end = stream.tokens.size() - 1;
    return matcher.match(*rules.at("file"), 0).count(end) != 0;
  }

private:
  struct Node {
    enum Kind { Terminal, Reference, Sequence, Choice, Optional, Repeat } kind;
    std::string text;
    std::vector<std::unique_ptr<Node>> children;
  };
  using NodePtr = std::unique_ptr<Node>;

  static bool startsLine(const std::string &rule) {
    return rule == "statement" || rule == "operation" || rule == "skip" || rule == "state" ||
           rule == "claim" || rule == "blocks" || rule == "work" || rule == "result" ||
           rule == "import";
  }

  static NodePtr make(Node::Kind kind, std::string text = "") {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->text = std::move(text);
    return node;
  }

  void skip() {
    while (position < text.size() && llvm::isSpace(text[position]))
      ++position;
  }
  bool at(char c) {
    skip();
    return position < text.size() && text[position] == c;
  }
  void expect(char c) {
    if (!at(c))
      abort();
    ++position;
  }
  std::string word() {
    skip();
    size_t begin = position;
    while (position < text.size() && llvm::isAlnum(text[position]))
      ++position;
    if (begin == position)
      abort();
    return text.substr(begin, position - begin);
  }

  NodePtr alternatives() {
    NodePtr choice = make(Node::Choice);
    do {
      NodePtr sequence = make(Node::Sequence);
      while (!at('|') && !at(';') && !at(')') && !at(']') && !at('}'))
        sequence->children.push_back(item());
      choice->children.push_back(std::move(sequence));
    } while (at('|') && (++position, true));
    return choice;
  }

  NodePtr item() {
    if (at('"')) {
      size_t end = text.find('"', position + 1);
      std::string terminal = text.substr(position + 1, end - position - 1);
      position = end + 1;
      if (llvm::isAlpha(terminal[0]))
        wordTerminals.insert(terminal);
      return make(Node::Terminal, terminal);
    }
    for (auto [open, close, kind] : {std::tuple{'[', ']', Node::Optional},
                                     {'{', '}', Node::Repeat},
                                     {'(', ')', Node::Sequence}}) {
      if (!at(open))
        continue;
      ++position;
      NodePtr group = make(kind);
      group->children.push_back(alternatives());
      expect(close);
      return group;
    }
    std::string name = word();
    used.insert(name);
    return make(Node::Reference, name);
  }

  void derive(const Node &node, const std::function<unsigned(unsigned)> &pick, unsigned depth,
              std::string &out) const {
    switch (node.kind) {
    case Node::Terminal:
      out += node.text + " ";
      return;
    case Node::Reference: {
      const char *names[] = {"a", "lr", "momentum", "orthogonalize", "f32"};
      const char *numbers[] = {"1", "0.5", "3e-4"};
      if (node.text == "NAME")
        out += std::string(names[pick(5)]) + " ";
      else if (node.text == "NUMBER")
        out += std::string(numbers[pick(3)]) + " ";
      else if (node.text == "STRING")
        out += "\"a*\" ";
      else {
        if (startsLine(node.text))
          out += "\n";
        derive(*rules.at(node.text), pick, depth + 1, out);
      }
      return;
    }
    case Node::Sequence:
      for (const NodePtr &child : node.children)
        derive(*child, pick, depth, out);
      return;
    case Node::Choice: {
      // Deep down the last alternative of each rule leads out.
      unsigned count = unsigned(node.children.size());
      unsigned chosen = pick(count);
      if (depth > 40 && count > 1 && node.children[0]->children.size() == 1)
        chosen = 0;
      derive(*node.children[chosen], pick, depth, out);
      return;
    }
    case Node::Optional:
      if (depth < 40 && pick(2) == 0)
        derive(*node.children[0], pick, depth, out);
      return;
    case Node::Repeat:
      // Many declarations and statements, but expressions that stay small.
      while (depth < 40 && (depth < 4 ? pick(3) != 0 : pick(5) == 0))
        derive(*node.children[0], pick, depth, out);
      return;
    }
  }

  /// All positions at which a match from a position can end, memoized.
  struct Matcher {
    const Grammar &grammar;
    const Source &source;
    const std::vector<Token> &tokens;
    std::map<std::pair<const Node *, size_t>, std::set<size_t>> memo;

    bool terminal(const std::string &text, const Token &token) const {
      if (text == "NAME")
        return token.kind == TokenKind::Name;
      if (text == "NUMBER")
        return token.kind == TokenKind::Number;
      if (text == "STRING")
        return token.kind == TokenKind::String;
      return token.kind != TokenKind::String && token.kind != TokenKind::End &&
             source.text(token.range) == text;
    }

    std::set<size_t> each(const Node &node, const std::set<size_t> &from) {
      std::set<size_t> ends;
      for (size_t position : from)
        ends.merge(std::set<size_t>(match(node, position)));
      return ends;
    }

    const std::set<size_t> &match(const Node &node, size_t from) {
      auto key = std::make_pair(&node, from);
      if (auto it = memo.find(key); it != memo.end())
        return it->second;
      std::set<size_t> ends;
      switch (node.kind) {
      case Node::Terminal:
        if (terminal(node.text, tokens[from]))
          ends.insert(from + 1);
        break;
      case Node::Reference: {
        auto rule = grammar.rules.find(node.text);
        if (rule == grammar.rules.end()) {
          if (terminal(node.text, tokens[from]))
            ends.insert(from + 1);
          break;
        }
        if (!startsLine(node.text) || tokens[from].startsLine ||
            (from && tokens[from - 1].kind == TokenKind::LeftBrace))
          ends = match(*rule->second, from);
        break;
      }
      case Node::Sequence:
        ends = {from};
        for (const NodePtr &child : node.children)
          ends = each(*child, ends);
        break;
      case Node::Choice:
        for (const NodePtr &child : node.children)
          ends.merge(std::set<size_t>(match(*child, from)));
        break;
      case Node::Optional:
        ends = match(*node.children[0], from);
        ends.insert(from);
        break;
      case Node::Repeat: {
        std::set<size_t> fresh = {from};
        while (!fresh.empty()) {
          ends.insert(fresh.begin(), fresh.end());
          std::set<size_t> further;
          for (size_t end : each(*node.children[0], fresh))
            if (!ends.count(end))
              further.insert(end);
          fresh = std::move(further);
        }
        break;
      }
      }
      return memo[key] = std::move(ends);
    }
  };

  std::string text;
  size_t position = 0;
  std::map<std::string, NodePtr> rules;
  std::set<std::string> used, wordTerminals;
};

} // namespace stepc::lang::test

#endif // STEPC_TEST_UNIT_LANGUAGE_GRAMMAR_H
