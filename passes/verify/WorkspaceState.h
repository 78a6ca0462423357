//===- WorkspaceState.h - What stands in the workspace ----------*- C++ -*-===//
//
// For a program at level exec, whose commands name bytes and not buffers. A value stands from its first byte
// to its last until another is written over any of them. A value that is read must stand there as a whole, in
// the layout in which it is read.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_WORKSPACESTATE_H
#define STEPC_PASSES_VERIFY_WORKSPACESTATE_H

#include "passes/verify/Terms.h"

#include "mlir/IR/Operation.h"

#include <array>
#include <map>

namespace stepc::verify {

/// Where a value stands in the workspace, and how.
struct Site {
  int64_t offset = 0, bytes = 0;
  /// At rest in blocks, `block` of each that a rank computes; or packed. Scalars have a group alone.
  plan::Place place = {};
  Extents block = {0, 0};
  int64_t group = -1, columns = 1;
  mlir::Type element = {};
  int64_t start = -1, traveller = 0; ///< of what moves
  int64_t pool = -1, member = 0;     ///< of batches that share these bytes

  bool isEqualLayout(const Site &other) const;
  /// Different values of one side of a start, or of a pool, share its bytes, and not one of them.
  bool standsBeside(const Site &other) const;
  std::string describe() const;
};

/// A value in the workspace.
struct Held {
  Site site;
  llvm::SmallVector<Term, 1> terms; ///< of scalars one per column
  mlir::Operation *writer = nullptr;
  int64_t producer = -1, message = -1; ///< tables that packed and carried it
  bool isRead = false;
  int64_t flight = -1;                ///< the start that it leaves or arrives with
  mlir::Operation *carrier = nullptr; ///< that start
  /// The command that read it last, for which of its tables (-2: several), and whether element by
  /// element.
  int64_t readAt = -1, readFor = -1, writtenAt = -1;
  bool readAlong = false;
};

class WorkspaceState {
public:
  explicit WorkspaceState(int64_t bytes) : bytes(bytes) {}

  /// The next command begins. `read` is called for all that it reads before `write` for what it writes.
  void advance(mlir::Operation *command) { ++now, user = command; }
  /// The value at a site, for a table of the command; nothing, after an error. `along`: element
  /// (r, c) of a chunk is read for element (r, c) of what is written.
  Held *read(const Site &site, int64_t table, bool along);
  /// The type of the value that begins there, if there is one.
  mlir::Type elementAt(const Site &site) const {
    auto found = held.find(keyOf(site));
    return found == held.end() ? mlir::Type() : found->second.site.element;
  }
  Held *write(Held value, int64_t table);
  /// A collective has ended.
  void land(int64_t start);
  bool checkAllRead();

private:
  using Key = std::array<int64_t, 5>; // by offset
  static Key keyOf(const Site &site) {
    return {site.offset, site.start, site.traveller, site.pool, site.member};
  }
  bool checkInside(const Site &site);
  bool checkInFlight(const Held &held, const char *what);
  bool overwrite(const Held &held, const Held &by, int64_t table);
  /// Whether what arrived was read before `writer`, if anybody, overwrites it.
  bool checkWasRead(const Held &value, mlir::Operation *writer = nullptr);

  int64_t bytes, now = 0;
  mlir::Operation *user = nullptr;
  std::map<Key, Held> held;
};

} // namespace stepc::verify

#endif
