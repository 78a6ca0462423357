//===- ParseBlocks.cpp - How fused weights are divided --------------------===//
#include "frontends/language/Parser.h"
#include "frontends/text/Text.h"

using namespace stepc::lang;
using llvm::StringRef;

bool Parser::parseIfPresent(std::optional<SourceRange> &ifPresent, StringRef what) {
  if (!at(TokenKind::KwIf))
    return true;
  SourceRange begin = consume().range;
  if (!atName("present")) {
    expected("'present'")
        .withHint("'if present' lets the patterns of " + what +
                  " match nothing; there is no other 'if'");
    return false;
  }
  ifPresent = begin.to(consume().range);
  return true;
}

/// Parses a number without a sign. Returns nothing after an error.
std::optional<Constant> Parser::parseCount(StringRef what) {
  if (at(TokenKind::Number))
    return parseConstant(what);
  hintConstant(expected(what), "");
  return std::nullopt;
}

std::optional<BlocksStatement> Parser::parseBlocks() {
  if (!checkStartsLine("the end of the line"))
    return std::nullopt;
  BlocksStatement blocks;
  SourceRange begin = consume().range;
  if (!parseStrings(blocks.globs) || !parseIfPresent(blocks.ifPresent, "'blocks'"))
    return std::nullopt;
  if (consumeIf(TokenKind::KwExcept) && !parseStrings(blocks.except))
    return std::nullopt;
  if (atName("flatten")) {
    consume();
    blocks.flatten = parseCount("the axis where columns begin");
    if (!blocks.flatten)
      return std::nullopt;
    if (!atName("repeat") && !at(TokenKind::KwRows) && !atName("columns")) {
      blocks.range = begin.to(previousRange());
      return blocks;
    }
  }
  if (atName("repeat")) {
    consume();
    blocks.repeat = parseCount("how often the blocks follow each other");
    if (!blocks.repeat)
      return std::nullopt;
  }
  if (consumeIf(TokenKind::KwRows)) {
    blocks.isColumns = false;
  } else if (atName("columns")) {
    consume();
    blocks.isColumns = true;
  } else {
    Diagnostic &error = expected(blocks.repeat ? "'rows' or 'columns'"
                                               : "'flatten', 'repeat', 'rows' or 'columns'");
    if (at(TokenKind::KwCols))
      error.withHint("did you mean 'columns'?");
    else if (at(TokenKind::KwIf))
      error.withHint("'if present' stands before 'except'");
    else if (at(TokenKind::Number) || atName("each") || atName("split"))
      error.withHint("say what the sizes count: 'rows 512, 128', 'columns each 64'");
    return std::nullopt;
  }
  if (!parseBlockSizes(blocks))
    return std::nullopt;
  blocks.range = begin.to(previousRange());
  return blocks;
}

bool Parser::parseBlockSizes(BlocksStatement &blocks) {
  for (BlockSizes sizes : {BlockSizes::Each, BlockSizes::Split})
    if (atName(plan::name(sizes))) {
      consume();
      blocks.sizes = sizes;
      std::optional<Constant> number =
          parseCount(sizes == BlockSizes::Each ? "the size of each block" : "the number of blocks");
      if (!number)
        return false;
      blocks.numbers.push_back(*number);
      return true;
    }
  do {
    std::optional<Constant> number =
        parseCount(blocks.numbers.empty() ? "sizes of blocks, 'each' or 'split'" : "a size");
    if (!number)
      return false;
    blocks.numbers.push_back(*number);
  } while (consumeIf(TokenKind::Comma));
  return true;
}
