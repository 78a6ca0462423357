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
