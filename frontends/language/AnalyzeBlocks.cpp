//===- AnalyzeBlocks.cpp - Numbers and patterns of blocks -----------------===//
#include "frontends/language/Analyzer.h"
#include "frontends/language/Constants.h"

#include <cmath>

using namespace stepc::lang;
using llvm::Twine;

/// The manifest has the same bounds of elements and repeats.
constexpr double mostElements = 0x1p40, mostRepeats = 0x1p16, mostAxes = 0x1p6;

static void checkCount(const Constant &number, const Twine &what, double most,
                       Diagnostics &diagnostics) {
  if (number.value >= 1 && number.value <= most && number.value == std::floor(number.value))
    return;
  diagnostics.error(number.range, "expected " + what + " as a whole number from 1 to 2^" +
                                      Twine(int(std::log2(most))) + ", found " +
                                      spellNumber(number.value));
}

void stepc::lang::analyzeBlocks(const BlocksStatement &blocks, Diagnostics &diagnostics) {
  checkPatterns(blocks.globs, diagnostics);
  checkPatterns(blocks.except, diagnostics);
  if (blocks.flatten)
    checkCount(*blocks.flatten, "the axis where columns begin", mostAxes, diagnostics);
  if (blocks.repeat)
    checkCount(*blocks.repeat, "how often the blocks follow each other", mostRepeats, diagnostics);
  for (const Constant &number : blocks.numbers)
    if (blocks.sizes == BlockSizes::Split)
      checkCount(number, "a number of blocks", mostRepeats, diagnostics);
    else
      checkCount(number, "the size of a block", mostElements, diagnostics);
}
