//===- Text.cpp - The report as tables --------------------------------------===//

#include "passes/explain/Explain.h"
#include "runtime/plan/Pinned.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc;
using namespace stepc::explain;
using llvm::StringRef;

namespace {

constexpr size_t kWidth = 120;

/// Columns on a terminal: characters, not bytes.
size_t widthOf(StringRef text) {
  return llvm::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

/// The first `width` columns, the last of them "…" where something is cut.
std::string cut(StringRef text, size_t width) {
  if (widthOf(text) <= width)
    return text.str();
  size_t columns = 0, bytes = 0;
  while (bytes < text.size() && columns + 1 < width) {
    ++columns;
    do
      ++bytes;
    while (bytes < text.size() && (text[bytes] & 0xC0) == 0x80);
  }
  return text.take_front(bytes).str() + "…";
}

/// Takes as many words from the front of `text` as `width` columns hold, at least one.
std::string takeLine(StringRef &text, size_t width) {
  std::string line;
  while (!text.empty()) {
    auto [word, rest] = text.split(' ');
    if (!line.empty() && widthOf(line) + 1 + widthOf(word) > width)
      break;
    line += (line.empty() ? "" : " ") + cut(word, width);
    text = rest;
  }
  return line;
}

/// Rows of cells under a header, as wide as they need to be. The last column goes on in further
/// lines where the page ends.
class Table {
public:
  explicit Table(std::vector<std::string> header, std::string rightAligned)
      : rightAligned(std::move(rightAligned)) {
    rows.push_back(std::move(header));
  }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }

  void print(llvm::raw_ostream &os) const {
    std::vector<size_t> widths(rows[0].size());
    for (const auto &row : rows)
      for (auto [cell, width] : llvm::zip(row, widths))
        width = std::max(width, widthOf(cell));
    for (const auto &row : rows) {
      std::string line;
      for (size_t i = 0; i + 1 < row.size(); ++i) {
        std::string space(widths[i] - widthOf(row[i]), ' ');
        line += (rightAligned[i] == '>' ? space + row[i] : row[i] + space) + "  ";
      }
      size_t indent = widthOf(line), room = kWidth - std::min(kWidth - 20, indent);
      StringRef rest = row.back();
      line += takeLine(rest, room);
      os << StringRef(line).rtrim() << '\n';
      while (!rest.empty())
        os << std::string(indent, ' ') << takeLine(rest, room) << '\n';
    }
  }

private:
  std::string rightAligned; // per column: '>' or '<'
  std::vector<std::vector<std::string>> rows;
};

/// 3 significant digits with a unit.
std::string scaled(double value, double base, llvm::ArrayRef<const char *> units) {
  size_t unit = 0;
  while (value >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (unit == 0)
    os << llvm::format("%.0f", value);
  else
    os << llvm::format(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  os << units[unit];
  return text;
}

std::string bytes(int64_t value) {
  return scaled(double(value), 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
}
std::string flops(int64_t value) {
  return scaled(double(value), 1000, {"", " k", " M", " G", " T", " P"});
}
std::string seconds(double value) { return scaled(value * 1e9, 1000, {" ns", " µs", " ms", " s"}); }
std::string count(int64_t value) { return std::to_string(value); }

std::string range(Range value, std::string (*spell)(int64_t)) {
  std::string least = spell(value.least), most = spell(value.most);
  return least == most ? most : least + "–" + most;
}

std::string fixed(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2f", value);
  return text;
}

std::string shapeOf(const GroupReport &group) {
  std::string text = group.part;
  for (auto [axis, size] : llvm::enumerate(group.shape))
    text += (axis == 0                          ? ""
             : int64_t(axis) == group.batchAxes ? " × "
                                                : "×") +
            std::to_string(size);
  return text.empty() ? "scalar" : text;
}

/// Names with `*` for what differs in their dotted parts; the first one and "…", if they have
/// nothing in common.
std::string patternOf(llvm::ArrayRef<std::string> names) {
  llvm::SmallVector<StringRef> first;
  StringRef(names[0]).split(first, '.');
  // Of each part, what all names begin and end with.
  llvm::SmallVector<size_t> prefix, suffix;
  llvm::SmallVector<bool> equal(first.size(), true);
  for (StringRef part : first) {
    prefix.push_back(part.size());
    suffix.push_back(part.size());
  }
  for (StringRef name : names) {
    llvm::SmallVector<StringRef> parts;
    name.split(parts, '.');
    if (parts.size() != first.size())
      return names[0] + ", …";
    for (size_t i = 0; i < parts.size(); ++i) {
      size_t length = std::min(parts[i].size(), first[i].size()), same = 0;
      equal[i] = equal[i] && parts[i] == first[i];
      while (same < std::min(length, prefix[i]) && parts[i][same] == first[i][same])
        ++same;
      prefix[i] = same;
      same = 0;
      while (same < std::min(length - prefix[i], suffix[i]) &&
             parts[i][parts[i].size() - 1 - same] == first[i][first[i].size() - 1 - same])
        ++same;
      suffix[i] = same;
    }
  }
  std::string pattern;
  bool anything = false;
  for (size_t i = 0; i < first.size(); ++i) {
    pattern += i ? "." : "";
    pattern += equal[i]
                   ? first[i].str()
                   : (first[i].take_front(prefix[i]) + "*" + first[i].take_back(suffix[i])).str();
    anything |= equal[i] || prefix[i] + suffix[i] > 0;
  }
  return anything ? pattern : names[0] + ", …";
}

std::string plural(int64_t count, StringRef what) {
  return (llvm::Twine(count) + " " + what + (count == 1 ? "" : "s")).str();
}

StringRef spelled(exec::Accumulation accumulation) {
  switch (accumulation) {
  case exec::Accumulation::FusedChain:
    return "fused chain";
  case exec::Accumulation::RoundedChain:
    return "rounded chain";
  case exec::Accumulation::TensorCore:
    return "tensor cores";
  }
  llvm_unreachable("all are named");
}

/// "48×16".
std::string edges(auto... extents) {
  std::string text;
  ((text += (text.empty() ? "" : "×") + std::to_string(extents)), ...);
  return text;
}

void printPinned(const Report &report, llvm::raw_ostream &os) {
  os << "\nProducts by cuBLASLt on the GPUs that are named, by the kernels above elsewhere\n";
  for (const ProductReport &one : report.products) {
    std::string product = edges(one.m, one.n) + " " + one.out + " of " + one.lhs + " · " + one.rhs +
                          ", k " + count(one.k) + ": ";
    if (one.pinned.empty())
      os << product << "the kernel: " << one.notPinned << '\n';
    for (const plan::PinnedAlgorithm &each : one.pinned)
      os << product << plan::cublasLtVersion(each.cublasLt) << " on sm_" << each.chip << " of "
         << each.multiprocessors << " multiprocessors, algorithm " << each.algorithm << ", tile "
         << each.tile << ", stages " << each.stages << '\n';
  }
}

void printProducts(const Report &report, llvm::raw_ostream &os) {
  os << "\nProducts of a block, by kernels of " << report.target << '\n';
  Table table({"result", "k", "operands", "", "sums", "tile", "stages", "groups"}, "><<<<>><");
  for (const ProductReport &one : report.products) {
    const kernels::ProductTile &tile = one.tile;
    std::vector<std::string> groups;
    for (const auto &[name, times] : one.groups)
      groups.push_back(name + " " + std::to_string(times) + "×");
    table.add({edges(one.m, one.n) + " " + one.out, count(one.k), one.lhs + " · " + one.rhs,
               one.symmetric ? "symmetric" : "", spelled(one.accumulation).str(),
               edges(tile.rows, tile.columns, tile.steps), count(tile.stages),
               llvm::join(groups, ", ")});
  }
  table.print(os);
}

} // namespace

std::string explain::toText(const Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << report.name << ": " << plural(report.parameters, "parameter") << " in "
     << plural(report.groups.size(), "group") << " on " << plural(report.world.size(), "rank");
  for (const plan::Mesh &mesh : report.meshes) {
    os << (&mesh == &report.meshes[0] ? " (" : "; ") << mesh.name << ":";
    for (auto [axis, size] : llvm::zip(mesh.axes, mesh.sizes))
      os << ' ' << axis << "=" << size;
  }
  os << ")\n\n";

  Table groups({"group", "parameters", "count", "shape", "type", "placements", "route"}, "<<><<<<");
  for (const GroupReport &group : report.groups)
    groups.add({group.name, cut(patternOf(group.parameters), 40),
                count(int64_t(group.parameters.size())), shapeOf(group),
                group.type + (group.type == group.gradientType ? "" : "/" + group.gradientType),
                group.placements, llvm::join(group.routes, ", ")});
  groups.print(os);
  if (!report.overridden.empty())
    os << "\nBlocks of the specification hold instead of the manifest's for "
       << plural(report.overridden.size(), "parameter") << ": "
       << cut(patternOf(report.overridden), 60) << ".\n";

  os << "\nEach rank, each step (* chosen; least–most over the ranks of the mesh)\n";
  Table costs({"group", "strategy", "bytes sent", "messages", "FLOPs", "balance", "modelled",
               "waves", "why"},
              "<<>>>>>><");
  for (const GroupReport &group : report.groups)
    for (const Alternative &item : group.strategies) {
      std::string name = (item.chosen ? "* " : "  ") + item.strategy;
      std::string label = item.chosen ? group.name : "";
      if (!item.cost) {
        costs.add({label, name, "", "", "", "", "", "", item.why});
        continue;
      }
      const Cost &cost = *item.cost;
      bool computes = cost.flops.most > 0;
      costs.add({label, name, range(cost.bytesSent, bytes), range(cost.messagesSent, count),
                 computes ? flops(cost.flops.most) : "", computes ? fixed(cost.balance) : "",
                 item.seconds > 0 ? seconds(item.seconds) : "",
                 item.chosen && group.strategies.size() > 1 ? count(group.waves) : "", item.why});
    }
  costs.print(os);

  if (!report.products.empty())
    printProducts(report, os);
  if (report.hasTable && !report.products.empty())
    printPinned(report, os);

  Cost total = summarize(report.ranks);
  os << "\nIn all each rank sends " << range(total.bytesSent, bytes) << " in "
     << range(total.messagesSent, count) << " messages and receives "
     << range(total.bytesReceived, bytes) << " in " << range(total.messagesReceived, count)
     << ", in " << plural(report.exchanges, "exchange") << ".\n";
  if (!report.communicators.empty()) {
    Range meeting{INT64_MAX, 0};
    for (const CommunicatorReport &one : report.communicators)
      meeting = {std::min(meeting.least, one.ranks), std::max(meeting.most, one.ranks)};
    os << "They are on " << plural(report.communicators.size(), "communicator") << " of "
       << range(meeting, count) << " ranks.\n";
  }
  if (total.flops.most > 0)
    os << "The most FLOPs on a rank are " << flops(total.flops.most) << ", " << fixed(total.balance)
       << " times the mean.\n";
  os << "The workspace is " << bytes(report.arena) << " on each rank, and at most "
     << bytes(report.scratch) << " of scratch";
  if (report.limit > 0)
    os << "; the limit is " << bytes(report.limit);
  os << ".\n";
  if (report.gpus) {
    os << "The library has machine code for " << llvm::join(report.gpus->chips, ", ");
    if (report.gpus->ptx)
      os << ", and PTX, of which the driver makes code for later chips when an instance is made";
    os << ".\n";
  }
  if (report.nccl)
    os << "NCCL takes memory beside it, about " << range(report.nccl->bytes(), bytes)
       << " on a rank: " << plural(report.nccl->connections, "connection") << " of "
       << NcclMemory::kLeastChannels << " to " << NcclMemory::kMostChannels << " channels of "
       << bytes(NcclMemory::kConnectionBytes) << ".\n";
  return text;
}
