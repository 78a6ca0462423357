//===- WorkspaceState.h - What stands in the workspace ----------*- C++ -*-===//
//
// Tracks which value stands where in the workspace while the commands of level 5 run. Commands name bytes,
// not buffers. A value ends when a command writes over any of its bytes. A command that reads a value must
// find it whole, in the layout in which the command reads it.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_WORKSPACESTATE_H
#define STEPC_PASSES_VERIFY_WORKSPACESTATE_H

#include "passes/verify/Terms.h"

#include "mlir/IR/Operation.h"

#include <array>
#include <map>

namespace stepc::verify {

/// The bytes of a value in the workspace, and its layout there.
struct Site {
  int64_t offset = 0, bytes = 0;
  /// If at rest in blocks, each computed block has the extents `block`. Otherwise the value is packed.
  /// Scalars have no place, only a `group`.
  plan::Place place = {};
  Extents block = {0, 0};
  int64_t group = -1, columns = 1;
  mlir::Type element = {};
  int64_t start = -1, traveller = 0; ///< if it moves: its start, its number there
  int64_t pool = -1, member = 0;     ///< if it is a member of a pool

  bool isEqualLayout(const Site &other) const;
  /// Whether both are different values of one buffer of a start, or different members of one pool. Both then
  /// name the bytes of the whole buffer or pool, but share none of them.
  bool standsBeside(const Site &other) const;
  std::string describe() const;
};

/// A value in the workspace.
struct Held {
  Site site;
  llvm::SmallVector<Term, 1> terms; ///< one; if it is scalars, one per column
  mlir::Operation *writer = nullptr;
  int64_t producer = -1, message = -1; ///< the tables that wrote and sent it; -1: none
  bool isRead = false;
  int64_t flight = -1;                ///< the start with which it is in flight; -1: none
  mlir::Operation *carrier = nullptr; ///< the command of that start
  /// The numbers of the commands that read it last and that wrote it. `readFor` is the reading table of that
  /// command (-2 if several tables read it), `readAlong` whether all of them read along (see `read`).
  int64_t readAt = -1, readFor = -1, writtenAt = -1;
  bool readAlong = false;
};

class WorkspaceState {
public:
  explicit WorkspaceState(int64_t bytes) : bytes(bytes) {}

  /// Begins the next command. The caller must call `read` for all that the command reads before it calls
  /// `write`.
  void advance(mlir::Operation *command) { ++now, user = command; }
  /// Returns the value at a site, which a table of the command reads, or null after an error. `along`: the
  /// command reads element (r, c) only to compute element (r, c) of what it writes.
  Held *read(const Site &site, int64_t table, bool along);
  /// The element type of the value at a site. Null if no value is there.
  mlir::Type elementAt(const Site &site) const {
    auto found = held.find(keyOf(site));
    return found == held.end() ? mlir::Type() : found->second.site.element;
  }
  Held *write(Held value, int64_t table);
  /// Ends a collective: its values are no longer in flight.
  void land(int64_t start);
  bool checkAllRead();

private:
  using Key = std::array<int64_t, 5>; // the offset comes first
  static Key keyOf(const Site &site) {
    return {site.offset, site.start, site.traveller, site.pool, site.member};
  }
  bool checkInside(const Site &site);
  bool checkInFlight(const Held &held, const char *what);
  bool overwrite(const Held &held, const Held &by, int64_t table);
  /// Checks that a value that arrived was read before it ends. `writer` is the command that overwrites it, or
  /// null at the end of the step.
  bool checkWasRead(const Held &value, mlir::Operation *writer = nullptr);

  int64_t bytes, now = 0;
  mlir::Operation *user = nullptr;
  std::map<Key, Held> held;
};

} // namespace stepc::verify

#endif
