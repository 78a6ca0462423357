//===- BufferStates.cpp - What each buffer holds as a step goes on --------===//

#include "passes/verify/BufferStates.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

std::string BufferStates::describe(const Meaning &meaning) const {
  switch (meaning.kind) {
  case Meaning::Nothing:
    return "nothing";
  case Meaning::Scalars:
    return "the scalars of group @" + plan.groups[meaning.index].name;
  case Meaning::Staged:
    break;
  }
  std::string segment = "segment @" + plan.segments[meaning.index].name;
  if (meaning.layout == plan::Layout::Blocks)
    return "the computed blocks of " + segment;
  return "the " + std::string(plan::name(meaning.value)) + " value of " + segment + " in layout " +
         comm::stringifyLayout(comm::Layout(meaning.layout)).str() + " " +
         comm::stringifyDirection(comm::Direction(meaning.direction)).str();
}

comm::BufferOp BufferStates::bufferOf(Operation *user, Value value) {
  auto buffer = value.getDefiningOp<comm::BufferOp>();
  if (!buffer)
    user->emitOpError("expected buffers of the workspace, found ") << value;
  else if (!cast<MemRefType>(buffer.getType()).getLayout().isIdentity())
    buffer.emitOpError("expected a memref without gaps, found ") << buffer.getType();
  else
    return buffer;
  return {};
}

/// The size that a buffer says it has is that of what it holds. (Bytes are checked against tables.)
bool BufferStates::checkExtent(Operation *user, comm::BufferOp buffer, const Meaning &meaning) {
  if (meaning.kind == Meaning::Scalars)
    return true; // its type is the size
  auto type = cast<MemRefType>(buffer.getType());
  auto refuse = [&](const Twine &found, Operation *other, const char *note) {
    auto diag = buffer.emitOpError("expected the size of ")
                << describe(meaning) << ", found " << found.str();
    diag.attachNote(user->getLoc()) << "the buffer is used for it here";
    if (other)
      diag.attachNote(other->getLoc()) << note;
    return false;
  };
  if (type.getNumDynamicDims() != 1 || !type.isDynamicDim(0))
    return refuse("a type that fixes it", nullptr, "");
  auto extent = buffer.getExtents()[0].getDefiningOp<comm::ExtentOp>();
  if (!extent)
    return refuse("a value that is no comm.extent", buffer.getExtents()[0].getDefiningOp(),
                  "the value is here");
  Meaning given{Meaning::Staged, segments.lookup(extent.getSegmentAttr().getAttr()),
                plan::Layout(extent.getLayout()), plan::Direction(extent.getDirection()),
                plan::ValueKind(extent.getValue())};
  // How many blocks a rank computes depends on neither direction nor kind.
  if (given.layout == plan::Layout::Blocks)
    given = Meaning::blocks(given.index);
  if (given == meaning)
    return true;
  return refuse("that of " + describe(given), extent, "the extent is here");
}

/// Refuses to touch what is in flight.
static void emitInFlight(Operation *user, comm::StartOp start, StringRef what) {
  auto diag = user->emitOpError("expected comm.wait before ") << what << ", found it in flight";
  diag.attachNote(start.getLoc()) << "the exchange starts here";
  for (Operation *wait : start.getToken().getUsers())
    diag.attachNote(wait->getLoc()) << "it is waited for here";
}

BufferState *BufferStates::read(Operation *user, Value value, const Meaning &wanted) {
  comm::BufferOp buffer = bufferOf(user, value);
  if (!buffer)
    return nullptr;
  BufferState &state = states[value];
  if (state.arriving) {
    emitInFlight(user, state.arriving, "what is received is read");
    return nullptr;
  }
  if (state.holds != wanted) {
    auto diag = user->emitOpError("expected ")
                << describe(wanted) << " in a buffer that it reads, found "
                << describe(state.holds);
    Operation *other = state.writer ? state.writer : buffer.getOperation();
    diag.attachNote(other->getLoc()) << (state.writer ? "written here" : "the buffer is here");
    return nullptr;
  }
  state.isRead = true;
  touch(state, user);
  return &state;
}

void BufferStates::touch(const BufferState &state, Operation *user) {
  lives[state.life].end = now;
  lives[state.life].lastUser = user;
}

BufferState *BufferStates::write(Operation *user, Value value, const Meaning &meaning) {
  comm::BufferOp buffer = bufferOf(user, value);
  if (!buffer)
    return nullptr;
  BufferState &state = states[value];
  if (state.leaving || state.arriving) {
    emitInFlight(user, state.leaving ? state.leaving : state.arriving,
                 state.leaving ? "what is sent is overwritten" : "what is received is overwritten");
    return nullptr;
  }
  if (state.writer == user) {
    user->emitOpError("expected distinct buffers for all that it writes, found one twice");
    return nullptr;
  }
  // What is read was written: there the extent is seen.
  if (!checkWasRead(state) || !checkExtent(user, buffer, meaning))
    return nullptr;
  state = BufferState();
  state.holds = meaning;
  state.writer = user;
  state.life = lives.size();
  lives.push_back({buffer, now, now, user, user});
  return &state;
}

void BufferStates::land(comm::StartOp start, Operation *wait) {
  for (OperandRange operands : {start.getSends(), start.getReceives()})
    for (Value value : operands) {
      BufferState &state = states[value];
      state.leaving = state.arriving = {};
      touch(state, wait);
    }
}

/// A route that leads nowhere is a fault of the program, whatever it costs.
bool BufferStates::checkWasRead(const BufferState &state) {
  if (state.message < 0 || state.isRead)
    return true;
  state.writer->emitOpError("expected a reader of all that it receives, found none for ")
      << describe(state.holds);
  return false;
}

bool BufferStates::checkAllRead() {
  return llvm::all_of(states, [&](auto &entry) { return checkWasRead(entry.second); });
}
