//===- OptionChecks.h - What a word of the command line may be --*- C++ -*-===//
//
// Checks are apart from Options.cpp, which needs exceptions. A check returns the error, or "" if there is
// none.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TOOLS_STEPC_OPTIONCHECKS_H
#define STEPC_TOOLS_STEPC_OPTIONCHECKS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace stepc::driver {

/// The profiles of clusters: "cpu, a100, …".
std::string profileNames();
std::string checkCluster(const std::string &text);
/// Checks a level such as "nvlink=8".
std::string checkLevel(const std::string &text);
/// Checks a target, such as "cuda:sm_80,sm_90a".
std::string checkTarget(const std::string &text);
/// Checks that no two targets, each of one chip, have the same program in a library.
std::string checkPrograms(llvm::ArrayRef<std::string> targets);
/// "local, owner or gather".
std::string alternatives(llvm::ArrayRef<std::string> names);
std::string checkStrategy(const std::string &text);
std::string checkNumerics(const std::string &text);
std::string checkOneOf(const std::string &text, std::initializer_list<const char *> names);
std::string checkCount(const std::string &text, int64_t most);
std::string checkBytes(const std::string &text);
std::string checkHyperparameter(const std::string &text);
std::string checkOversubscription(const std::string &text);

/// "Muon.1.lr=0.1" as a name and a value. The name is empty if the text has another form.
std::pair<std::string, double> parseHyperparameter(const std::string &text);

/// "8/2" as 8 ranks and 2 devices. Both are 0 if the text has another form.
std::pair<int64_t, double> parseOversubscription(const std::string &text);

/// CLI11's text in the product's voice: lower case, no full stop.
std::string tidy(std::string message);

/// "did you mean '--json'? " if the word is the begin of one name alone, or is near to a name. Empty
/// otherwise.
std::string suggest(llvm::StringRef word, const std::vector<std::string> &names);

} // namespace stepc::driver

#endif
