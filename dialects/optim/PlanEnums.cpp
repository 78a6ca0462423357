//===- PlanEnums.cpp - Words of enumerations ------------------------------===//

#include "dialects/optim/PlanEnums.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

FailureOr<size_t> stepc::parseOneOf(AsmParser &parser, ArrayRef<std::string_view> words) {
  SMLoc at = parser.getCurrentLocation();
  StringRef found;
  bool isWord = succeeded(parser.parseOptionalKeyword(&found));
  if (const auto *word = llvm::find(words, std::string_view(found)); word != words.end())
    return static_cast<size_t>(word - words.begin());
  InFlightDiagnostic error = parser.emitError(at, "expected ")
                             << plan::oneOf({words.data(), words.size()});
  if (isWord)
    error << ", found " << found;
  return error;
}

/// Parses an extent of a kind: a constant, or the name of an extent of the block (plan::kExtents).
static ParseResult parseExtent(AsmParser &parser, int64_t &extent) {
  SMLoc at = parser.getCurrentLocation();
  if (OptionalParseResult number = parser.parseOptionalInteger(extent); number.has_value()) {
    if (failed(*number))
      return failure();
    if (extent > 0 && extent <= plan::kMostExtent)
      return success();
    return parser.emitError(at, "expected an extent between 1 and 2^40, found ") << extent;
  }
  FailureOr<size_t> word = stepc::parseOneOf(parser, plan::kExtents);
  if (succeeded(word))
    extent = -int64_t(*word) - 1;
  return success(succeeded(word));
}

FailureOr<size_t> stepc::parseKind(AsmParser &parser, plan::ValueKind &kind,
                                   ArrayRef<std::string_view> others) {
  if (succeeded(parser.parseOptionalLSquare())) {
    if (parseExtent(parser, kind.rows) || parser.parseComma() || parseExtent(parser, kind.cols) ||
        parser.parseRSquare())
      return failure();
    return others.size();
  }
  SmallVector<std::string_view> words;
  for (auto [word, named] : plan::kNamedKinds)
    words.push_back(word);
  llvm::append_range(words, others);
  FailureOr<size_t> found = parseOneOf(parser, words);
  if (failed(found))
    return failure();
  if (*found >= plan::kNamedKinds.size())
    return *found - plan::kNamedKinds.size();
  kind = plan::kNamedKinds[*found].second;
  return others.size();
}
