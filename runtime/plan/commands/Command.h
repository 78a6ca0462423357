//===- Command.h - The commands of a step -----------------------*- C++ -*-===//
//
// A command is one of the structs of this room. Each struct has
//
// - `kName`, its name for people and tools;
// - `fields`, which names its fields one after another: bytes and JSON follow this list;
// - `check`, which says what makes the command unsafe to carry out (validateProgram);
// - `effects`, which says what the command may do to memory (Effect.h).
//
// The runtime prepares commands in runtime/core/commands. The proof carries them out on symbolic terms in
// passes/verify.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_COMMAND_H
#define STEPC_RUNTIME_PLAN_COMMANDS_COMMAND_H

#include "runtime/model/Fields.h"
#include "runtime/plan/commands/Collectives.h"
#include "runtime/plan/commands/Dispatch.h"
#include "runtime/plan/commands/Matrix.h"
#include "runtime/plan/commands/Moves.h"

namespace stepc::plan {

/// All kinds of commands: DO(Kind) for each. The order is part of the serialized form.
#define STEPC_COMMANDS(DO)                                                                         \
  DO(DispatchChunks)                                                                               \
  DO(DispatchParameters)                                                                           \
  DO(Product) DO(Apply) DO(Copy) DO(Start) DO(Await) DO(AdvanceSteps) DO(Sum) DO(Collect) DO(Skip)

template <typename, typename... Kinds> using VariantOf = std::variant<Kinds...>;
#define STEPC_COMMAND(Kind) , Kind
/// One command of a step. Commands and tables say what a rank must have done by the end of a step, and the
/// runtime refuses a step that did anything else.
using Command = VariantOf<void STEPC_COMMANDS(STEPC_COMMAND)>;
#undef STEPC_COMMAND

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

/// The effects of a temporary would refer to operands that are gone.
Effects effects(const Plan &plan, Command &&command) = delete;

} // namespace stepc::plan

#endif
