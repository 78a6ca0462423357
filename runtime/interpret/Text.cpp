//===- Text.cpp - Kernels for people -----------------------------------------===//
#include "runtime/interpret/Kernels.h"

namespace stepc::interpret {
namespace {

std::string at(int64_t number) { return "r" + std::to_string(number); }

std::string line(const Instruction &each) {
  bool isComparison =
      each.operation == Operation::CompareF || each.operation == Operation::CompareI;
  std::string text = at(each.result) + " = " + std::string(plan::name(each.operation)) +
                     (isComparison ? " #" + std::to_string(each.predicate) : "") + " " +
                     at(each.first);
  if (operandsOf(each.operation) > 1)
    text += ", " + at(each.second);
  if (operandsOf(each.operation) > 2)
    text += ", " + at(each.third);
  text += " : " + std::string(plan::name(each.type));
  return each.to == each.type ? text : text + " to " + std::string(plan::name(each.to));
}

/// Prints a field and its value on one line, and a list of structs with a line per item.
class Printer {
public:
  template <typename T> void field(const char *name, const T &value, const std::string &indent) {
    if constexpr (plan::isVector<T>) {
      list(name, value, indent);
    } else if constexpr (plan::isOptional<T>) {
      if (value)
        field(name, *value, indent);
    } else if constexpr (plan::HasFields<const T>) {
      text += indent + name + "\n";
      T::fields(value,
                [&](const char *inner, const auto &each) { field(inner, each, indent + "  "); });
    } else {
      text += indent + name + " " + word(value) + "\n";
    }
  }
  std::string text;

private:
  template <typename T> static std::string word(const T &value) {
    if constexpr (std::is_enum_v<T>)
      return std::string(plan::name(value));
    else if constexpr (std::is_same_v<T, bool>)
      return value ? "yes" : "no";
    else
      return std::to_string(value);
  }
  template <typename T>
  void list(const char *name, const std::vector<T> &values, const std::string &indent) {
    text += indent + name + (values.empty() ? " none" : "");
    if constexpr (plan::HasFields<const T>) {
      text += "\n";
      for (const T &each : values)
        text += indent + "  " + item(each) + "\n";
    } else {
      for (T each : values)
        text += " " + word(each);
      text += "\n";
    }
  }
  template <typename T> static std::string item(const T &value) {
    if constexpr (std::is_same_v<T, Instruction>) {
      return line(value);
    } else {
      std::string text;
      T::fields(value, [&](const char *name, const auto &each) {
        text += (text.empty() ? "" : ", ") + std::string(name) + " " + word(each);
      });
      return text;
    }
  }
};

} // namespace

std::string toText(const NamedKernel &kernel) {
  Printer printer;
  printer.text = std::string(name(kernel.kernel)) + " '" + kernel.name + "'\n";
  std::visit(
      [&](const auto &each) {
        std::remove_cvref_t<decltype(each)>::fields(
            each, [&](const char *name, const auto &value) { printer.field(name, value, "  "); });
      },
      kernel.kernel);
  return printer.text;
}

} // namespace stepc::interpret
