//===- WorkspaceState.cpp - What stands in the workspace -------------------===//

#include "passes/verify/WorkspaceState.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

bool Site::isEqualLayout(const Site &other) const {
  return place == other.place && block.rows == other.block.rows && block.cols == other.block.cols &&
         group == other.group && columns == other.columns && element == other.element;
}

bool Site::standsBeside(const Site &other) const {
  if (pool >= 0 && pool == other.pool)
    return member != other.member;
  return start >= 0 && start == other.start && place.end == other.place.end &&
         traveller != other.traveller;
}

std::string Site::describe() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (group >= 0)
    os << columns << " scalars per parameter";
  else if (place.isPacked())
    os << "what is " << plan::name(place.end) << (place.end == plan::End::Kept ? " of shards" : "")
       << ", of " << element;
  else
    os << "blocks of " << block.rows << " x " << block.cols << " of " << element;
  os << " at byte " << offset;
  if (pool >= 0)
    os << ", member " << member << " of pool " << pool;
  return text;
}

bool WorkspaceState::checkInside(const Site &site) {
  if (site.bytes > 0 && site.offset <= bytes - site.bytes)
    return true;
  user->emitOpError("expected operands of some bytes inside of the workspace of ")
      << bytes << " bytes, found " << site.bytes << " bytes at byte " << site.offset;
  return false;
}

bool WorkspaceState::checkInFlight(const Held &held, const char *what) {
  if (held.flight < 0)
    return true;
  auto diag = user->emitOpError("expected exec.await before ") << what << ", found it in flight";
  diag.attachNote(held.carrier->getLoc()) << "the collective starts here";
  return false;
}

Held *WorkspaceState::read(const Site &site, int64_t table, bool along) {
  if (!checkInside(site))
    return nullptr;
  auto found = held.find(keyOf(site));
  if (found == held.end() || !found->second.site.isEqualLayout(site)) {
    auto diag = user->emitOpError("expected to read ") << site.describe() << ", found ";
    diag << (found == held.end() ? "none" : found->second.site.describe());
    if (found != held.end())
      diag.attachNote(found->second.writer->getLoc()) << "it was written here";
    return nullptr;
  }
  Held &value = found->second;
  if (site.place.end == plan::End::Received && !checkInFlight(value, "what is received is read"))
    return nullptr;
  bool again = value.readAt == now;
  value.readFor = again && value.readFor != table ? -2 : table;
  value.readAlong = along && (!again || value.readAlong);
  value.readAt = now;
  value.isRead = true;
  return &value;
}

/// Whether the command may write `by` over the value `old`. Emits an error if not.
bool WorkspaceState::overwrite(const Held &old, const Held &by, int64_t table) {
  if (!checkInFlight(old, "it is overwritten") || !checkWasRead(old, user))
    return false;
  bool inPlace = old.readAlong && old.readFor == table && old.site.isEqualLayout(by.site) &&
                 keyOf(old.site) == keyOf(by.site);
  bool conflicts = old.writtenAt == now || (old.readAt == now && !inPlace);
  if (!conflicts)
    return true;
  auto diag = user->emitOpError("expected to write apart from all else that the command reads or "
                                "writes, found ")
              << by.site.describe() << " over " << old.site.describe();
  return false;
}

Held *WorkspaceState::write(Held value, int64_t table) {
  const Site &site = value.site;
  if (!checkInside(site))
    return nullptr;
  // Known values do not overlap, except values of one buffer or pool, which all name its bytes.
  int64_t end = site.offset + site.bytes;
  for (auto next = held.lower_bound({end, -1, 0, -1, 0}); next != held.begin();) {
    auto old = std::prev(next);
    const Site &other = old->second.site;
    if (other.offset + other.bytes <= site.offset)
      break;
    if (site.standsBeside(other)) {
      next = old;
      continue;
    }
    if (!overwrite(old->second, value, table))
      return nullptr;
    next = held.erase(old);
  }
  value.writer = user;
  value.writtenAt = now;
  return &(held[keyOf(site)] = std::move(value));
}

void WorkspaceState::land(int64_t start) {
  for (auto &[key, value] : held)
    if (value.flight == start)
      value.flight = -1;
}

bool WorkspaceState::checkWasRead(const Held &value, Operation *writer) {
  if (value.message < 0 || value.isRead)
    return true;
  auto diag =
      value.writer->emitOpError("expected a reader of all that it receives, found none for ")
      << value.site.describe();
  if (writer)
    diag.attachNote(writer->getLoc()) << "it is overwritten here";
  return false;
}

bool WorkspaceState::checkAllRead() {
  return llvm::all_of(held, [&](auto &entry) { return checkWasRead(entry.second); });
}
