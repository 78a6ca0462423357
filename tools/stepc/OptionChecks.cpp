//===- OptionChecks.cpp - What a word of the command line may be -----------===//

#include "tools/stepc/OptionChecks.h"

#include "dialects/optim/Optim.h"
#include "frontends/language/NumberForms.h"
#include "frontends/manifest/JsonText.h"
#include "frontends/text/Text.h"
#include "passes/cost/Profiles.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/TargetShape.h"
#include "tools/stepc/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"

#include <cmath>

using namespace stepc;

int64_t driver::parseBytes(const std::string &text) {
  // Take decimal numbers alone: getAsDouble also accepts exponents, hexadecimal numbers and names.
  llvm::StringRef digits =
      llvm::StringRef(text).take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  llvm::StringRef unit = llvm::StringRef(text).drop_front(digits.size()).ltrim(' ');
  double number = 0;
  if (digits.getAsDouble(number))
    return -1;
  static const std::pair<const char *, double> units[] = {{"", 1},
                                                          {"B", 1},
                                                          {"KiB", 1024.},
                                                          {"MiB", 1048576.},
                                                          {"GiB", 1073741824.},
                                                          {"TiB", 1099511627776.}};
  for (auto [name, factor] : units)
    if (unit == name) {
      double bytes = number * factor;
      // 1.1GiB counts as whole bytes, rounded down. A fraction of bytes means that the unit is missing.
      bool isWhole = factor > 1 || bytes == std::floor(bytes);
      return isWhole && bytes < 9e18 ? int64_t(bytes) : -1;
    }
  return -1;
}

std::string driver::profileNames() {
  std::string names;
  for (const cost::Cluster &profile : cost::profiles())
    names += (names.empty() ? "" : ", ") + profile.profile;
  return names;
}

std::string driver::checkCluster(const std::string &text) {
  bool isJson = text.rfind('{', 0) == 0;
  if (isJson || cost::findProfile(text) || llvm::sys::fs::exists(text))
    return "";
  std::vector<llvm::StringRef> known;
  for (const cost::Cluster &profile : cost::profiles())
    known.push_back(profile.profile);
  return "expected a profile (" + profileNames() + ") or a file, found '" + text + "'" +
         manifest::nearestHint(text, known);
}

std::string driver::checkLevel(const std::string &text) {
  auto [name, ranks] = llvm::StringRef(text).rsplit('=');
  int64_t count = 0;
  if (name.empty() || ranks.getAsInteger(10, count) || count < 1 || count > int64_t(1) << 31)
    return "expected NAME=RANKS as in nvlink=8, found '" + text + "'";
  return text::checkName(name, "a level's name");
}

std::string driver::checkTarget(const std::string &text) {
  for (const std::string &target : targetsByChip(text))
    if (llvm::Expected<std::string> chip = chipOfTarget(target); !chip)
      return llvm::toString(chip.takeError());
  return "";
}

std::string driver::checkPrograms(llvm::ArrayRef<std::string> targets) {
  llvm::StringMap<llvm::StringRef> programs;
  for (const std::string &target : targets) {
    std::string key = programKey(llvm::cantFail(chipOfTarget(target), "it was checked"));
    if (auto [found, isNew] = programs.try_emplace(key, target); !isNew)
      return "expected one target for " + key + ", found '" + found->second.str() + "' and '" +
             target + "'";
  }
  return "";
}

static std::string checkPattern(const std::string &text) {
  NamePatternError error;
  return NamePattern::parse(text, error) ? "" : error.text() + ", of '" + text + "'";
}

std::string driver::alternatives(llvm::ArrayRef<std::string> names) {
  std::string text;
  for (auto [index, name] : llvm::enumerate(names))
    text += (index == 0 ? "" : index + 1 < names.size() ? ", " : " or ") + name;
  return text;
}

std::string driver::checkStrategy(const std::string &text) {
  size_t at = text.rfind('=');
  if (at == 0 || at == std::string::npos)
    return "expected PATTERN=NAME, found '" + text + "'";
  if (std::string wrong = checkPattern(text.substr(0, at)); !wrong.empty())
    return wrong;
  std::vector<std::string> all = strategyNames();
  llvm::SmallVector<llvm::StringRef> names(all.begin(), all.end());
  llvm::StringRef name = llvm::StringRef(text).drop_front(at + 1);
  if (llvm::is_contained(names, name))
    return "";
  llvm::StringRef nearest = optim::newNameOf(name);
  if (nearest.empty())
    nearest = text::nearestName(name, names);
  return "expected PATTERN=NAME with a strategy's name (" + alternatives(all) + "), found '" +
         text + "'" +
         (nearest.empty() ? ""
                          : ", did you mean '" + text.substr(0, at + 1) + nearest.str() + "'?");
}

std::string driver::checkNumerics(const std::string &text) {
  return text == "exact" || text == "fast" ? ""
                                           : "expected exact or fast, found '" + text + "'" +
                                                 manifest::nearestHint(text, {"exact", "fast"});
}

std::string driver::checkOneOf(const std::string &text, std::initializer_list<const char *> names) {
  std::string list;
  llvm::SmallVector<llvm::StringRef> known;
  for (const char *name : names) {
    if (text == name)
      return "";
    list += (list.empty() ? "" : ", ") + std::string(name);
    known.push_back(name);
  }
  return "expected one of " + list + ", found '" + text + "'" + manifest::nearestHint(text, known);
}

std::string driver::checkCount(const std::string &text, int64_t most) {
  int64_t value = 0;
  if (llvm::StringRef(text).getAsInteger(10, value) || value < 1 || value > most)
    return "expected a whole number from 1 to " + std::to_string(most) + ", found '" + text + "'";
  return "";
}

/// Suggests "64MiB" for "64MB", "64mb", "64M" and "64 MIB". For a unit as MB also suggests the bytes in units
/// of 1000.
static std::string suggestBytes(llvm::StringRef text) {
  auto isDigit = [](char c) { return llvm::isDigit(c) || c == '.'; };
  llvm::StringRef digits = text.take_while(isDigit);
  std::string unit = text.drop_front(digits.size()).trim().upper();
  double number = 0;
  if (digits.getAsDouble(number) || unit.empty() || !llvm::StringRef("KMGT").contains(unit[0]))
    return "";
  llvm::StringRef rest = llvm::StringRef(unit).drop_front();
  if (rest != "" && rest != "B" && rest != "IB")
    return "";
  std::string meant = digits.str() + unit[0] + "iB", decimal;
  if (rest == "B") {
    for (char each : {'K', 'M', 'G', 'T'}) {
      number *= 1000;
      if (each == unit[0])
        break;
    }
    if (number == std::floor(number) && number < 9e18)
      decimal = ", or " + std::to_string(int64_t(number)) + " in units of 1000";
  }
  return driver::parseBytes(meant) > 0 ? ", did you mean '" + meant + "'" + decimal + "?" : "";
}

std::string driver::checkBytes(const std::string &text) {
  return parseBytes(text) > 0 ? ""
                              : "expected a whole number of bytes, or a number of KiB, MiB, GiB or "
                                "TiB, as 4096, 64KiB "
                                "or 1.5GiB, found '" +
                                    text + "'" + suggestBytes(text);
}

std::pair<std::string, double> driver::parseHyperparameter(const std::string &text) {
  auto [name, value] = llvm::StringRef(text).rsplit('=');
  bool isNegative = value.consume_front("-");
  if (!name.contains('.') || !lang::isNumber(value) || !lang::fitsF64(value))
    return {"", 0};
  return {name.str(), isNegative ? -lang::numberValue(value) : lang::numberValue(value)};
}

std::string driver::checkHyperparameter(const std::string &text) {
  return parseHyperparameter(text).first.empty()
             ? "expected ROUTE.NAME=VALUE with a number such as 1, 0.95 or 3e-4, found '" + text +
                   "'"
             : "";
}

std::pair<int64_t, double> driver::parseOversubscription(const std::string &text) {
  auto [ranks, devices] = llvm::StringRef(text).split('/');
  int64_t count = 0;
  double each = 0;
  if (ranks.getAsInteger(10, count) || devices.getAsDouble(each) || count < 1 || !(each > 0) ||
      each > double(count))
    return {0, 0};
  return {count, each};
}

std::string driver::checkOversubscription(const std::string &text) {
  return parseOversubscription(text).first > 0
             ? ""
             : "expected RANKS/DEVICES, at least as many ranks as devices, as 8/2, found '" + text +
                   "'";
}

std::string driver::tidy(std::string message) {
  while (!message.empty() && (message.back() == '\n' || message.back() == '.'))
    message.pop_back();
  if (message.size() > 1 && std::isupper(static_cast<unsigned char>(message[0])) &&
      std::islower(static_cast<unsigned char>(message[1])))
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  return message;
}

std::string driver::suggest(llvm::StringRef word, const std::vector<std::string> &names) {
  llvm::StringRef meant;
  size_t longer = 0; // number of names that begin with the word
  for (llvm::StringRef name : names)
    if (!word.ltrim('-').empty() && name.starts_with(word)) {
      meant = name;
      ++longer;
    }
  if (longer != 1)
    meant = text::nearestName(word, std::vector<llvm::StringRef>(names.begin(), names.end()));
  return meant.empty() ? "" : "did you mean '" + meant.str() + "'? ";
}
