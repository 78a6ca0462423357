//===- Command.h - The commands of a step -----------------------*- C++ -*-===//
//
// A command is one of the structs of this room. Each has
//
// - `kName`, its name for people and tools;
// - `fields`, which names its fields one after another: bytes and JSON are made of this list;
// - `check`, which says what makes it unsafe to carry out (validateProgram);
// - `effects`, which says what it may do to memory (Effect.h).
//
// The runtime makes them ready in runtime/core/commands. The proof runs them on terms in passes/verify.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_COMMAND_H
#define STEPC_RUNTIME_PLAN_COMMANDS_COMMAND_H

#include "runtime/plan/commands/Collectives.h"
#include "runtime/plan/commands/Dispatch.h"
#include "runtime/plan/commands/Matrix.h"
#include "runtime/plan/commands/Moves.h"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace stepc::plan {

/// One command of a step. Commands and tables tell what a rank must have done at the end of a step; the
/// runtime refuses a step that did anything else. The order is part of the serialized form.
using Command = std::variant<DispatchChunks, DispatchParameters, Product, Reduce, Copy, Start,
                             Await, AdvanceSteps, Sum>;

/// Functions for the alternatives of a variant, as one.
template <typename... Functions> struct Overloads : Functions... {
  using Functions::operator()...;
};

/// "chunks", "parameters", "product", …
inline std::string_view name(const Command &command) {
  return std::visit([](const auto &each) { return each.kName; }, command);
}
/// What a command may do to memory. It refers to the command's operands.
inline Effects effects(const Plan &plan, const Command &command) {
  Effects list;
  std::visit([&](const auto &each) { each.effects(plan, list); }, command);
  return list;
}

template <typename T> inline constexpr bool isVector = false;
template <typename T> inline constexpr bool isVector<std::vector<T>> = true;
template <typename T> inline constexpr bool isOptional = false;
template <typename T> inline constexpr bool isOptional<std::optional<T>> = true;

/// A struct that names its fields.
template <typename T>
concept HasFields = requires(T &value) { T::fields(value, [](const char *, auto &) {}); };

/// Visits all fields of type T in a command, or in a part of one, in the order of the fields.
template <typename T, typename Value, typename Visit> void forEach(Value &value, Visit &&visit) {
  using Plain = std::remove_const_t<Value>;
  auto inner = [&](auto &part) { forEach<T>(part, visit); };
  if constexpr (std::is_same_v<Plain, T>)
    visit(value);
  else if constexpr (std::is_same_v<Plain, Command>)
    std::visit(inner, value);
  else if constexpr (HasFields<Plain>)
    Plain::fields(value, [&](const char *, auto &field) { inner(field); });
  else if constexpr (isVector<Plain>)
    std::for_each(value.begin(), value.end(), inner);
  else if constexpr (isOptional<Plain>)
    value ? inner(*value) : void();
}

} // namespace stepc::plan

#endif
