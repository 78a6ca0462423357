//===- BufferStates.cpp - What each buffer holds as a step goes on --------===//

#include "passes/verify/BufferStates.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

comm::BufferOp BufferStates::bufferOf(Operation *user, Value value) {
  auto buffer = value.getDefiningOp<comm::BufferOp>();
  if (!buffer)
    user->emitOpError("expected buffers of the workspace, found ") << value;
  else if (!cast<MemRefType>(value.getType()).getLayout().isIdentity())
    buffer.emitOpError("expected a memref without gaps, found ") << value.getType();
  else
    return buffer;
  return {};
}

/// The size that a buffer says it has is that of its place. (Bytes are checked against tables.)
bool BufferStates::checkExtent(Operation *user, Value value) {
  auto buffer = value.getDefiningOp<comm::BufferOp>();
  comm::PlaceAttr place = comm::placeOf(value);
  if (place.isScalars())
    return true; // its type is the size
  auto type = cast<MemRefType>(value.getType());
  auto refuse = [&](const Twine &found, Operation *other, const char *note) {
    auto diag = buffer.emitOpError("expected the size of ") << place << ", found " << found.str();
    diag.attachNote(user->getLoc()) << "the buffer is used here";
    if (other)
      diag.attachNote(other->getLoc()) << note;
    return false;
  };
  if (type.getNumDynamicDims() != 1 || !type.isDynamicDim(0))
    return refuse("a type that fixes it", nullptr, "");
  Value size = buffer.getExtentsOf(value).front();
  auto extent = size.getDefiningOp<comm::ExtentOp>();
  if (!extent)
    return refuse("a value that is no comm.extent", size.getDefiningOp(), "the value is here");
  comm::PlaceAttr given = extent.getPlace();
  // How many blocks a rank computes does not depend on what is held of them.
  if (given == place ||
      (given.isBatch() && place.isBatch() && given.getSymbol() == place.getSymbol()))
    return true;
  std::string found;
  llvm::raw_string_ostream(found) << "that of " << given;
  return refuse(found, extent, "the extent is here");
}

/// Refuses to touch what is in flight.
static void emitInFlight(Operation *user, comm::StartOp start, StringRef what) {
  auto diag = user->emitOpError("expected comm.wait before ") << what << ", found it in flight";
  diag.attachNote(start.getLoc()) << "the exchange starts here";
  for (Operation *wait : start.getToken().getUsers())
    diag.attachNote(wait->getLoc()) << "it is waited for here";
}

BufferState *BufferStates::read(Operation *user, Value value) {
  comm::BufferOp buffer = bufferOf(user, value);
  if (!buffer)
    return nullptr;
  BufferState &state = states[value];
  if (state.arriving) {
    emitInFlight(user, state.arriving, "what is received is read");
    return nullptr;
  }
  if (!state.writer) {
    auto diag = user->emitOpError("expected a value in ")
                << comm::placeOf(value) << " before it is read, found none written";
    diag.attachNote(buffer.getLoc()) << "the buffer is here";
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

BufferState *BufferStates::write(Operation *user, Value value) {
  if (!bufferOf(user, value))
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
  if (!checkWasRead(value, state) || !checkExtent(user, value))
    return nullptr;
  state = BufferState();
  state.writer = user;
  state.life = lives.size();
  lives.push_back({value, now, now, user, user});
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
bool BufferStates::checkWasRead(Value value, const BufferState &state) {
  if (state.message < 0 || state.isRead)
    return true;
  state.writer->emitOpError("expected a reader of all that it receives, found none for what "
                            "arrives in ")
      << comm::placeOf(value);
  return false;
}

bool BufferStates::checkAllRead() {
  return llvm::all_of(states, [&](auto &entry) { return checkWasRead(entry.first, entry.second); });
}
