//===- MoveTable.cpp - Bytes by what they travel for -----------------------===//

#include "passes/explain/MoveTable.h"

#include "passes/explain/TextTable.h"

#include "llvm/ADT/STLExtras.h"

using namespace stepc;

void explain::printMoveKinds(const std::vector<std::pair<std::string, plan::BytesByKind>> &groups,
                             llvm::raw_ostream &os) {
  if (llvm::none_of(groups, [](const auto &group) { return group.second.hasOthers(); }))
    return;
  std::vector<std::string> header = {"group"};
  std::vector<size_t> columns;
  for (size_t kind = 0; kind < plan::kMoveKinds; ++kind)
    if (llvm::any_of(groups, [&](const auto &group) { return group.second[kind] > 0; })) {
      columns.push_back(kind);
      header.push_back(plan::kMoveNames[kind]);
    }
  TextTable table(header, "<" + std::string(columns.size(), '>'));
  for (const auto &[name, sent] : groups) {
    std::vector<std::string> row = {name};
    for (size_t kind : columns)
      row.push_back(bytes(sent[kind]));
    table.add(std::move(row));
  }
  os << "\nBytes that all ranks send, by what they are sent for\n";
  table.print(os);
}
