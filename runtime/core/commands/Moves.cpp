//===- Moves.cpp - Copies and sums on one rank --------------------------------===//
#include "runtime/core/Instance.h"

namespace stepc::runtime {
namespace {

class PreparedCopy : public PreparedCommand {
public:
  using PreparedCommand::PreparedCommand;

  void enqueue() override { instance.device().copy(instance.deviceContext, Stream::Compute, copy); }
  void count(stepc_counters &counters) const override {
    ++counters.launches;
    counters.chunks += int64_t(rows.size());
  }
  void lend(std::vector<HostList> &lists) const override { lendList(lists, rows); }
  std::string place(const AddressOf &addressOf) override {
    copy.count = int64_t(rows.size());
    auto addressed = [&]<typename T>(T *list) {
      return static_cast<T *>(const_cast<void *>(addressOf(list)));
    };
    copy.rows = addressed(rows.data());
    copy.fromShards = addressed(copy.fromShards);
    copy.toShards = addressed(copy.toShards);
    // The arguments of a kernel that copies.
    arguments = {const_cast<plan::CopyRow *>(copy.rows),
                 const_cast<char *>(copy.from),
                 copy.to,
                 const_cast<void **>(copy.fromShards),
                 const_cast<void **>(copy.toShards),
                 addressed(instance.running.records.data())};
    return checkLaunch(instance, copy.launch, arguments);
  }
  void declare(const AddUse &add) const override {
    add(arguments[0], int64_t(rows.size() * sizeof(plan::CopyRow)), "the command's rows", false);
    add(arguments[5], int64_t(instance.running.records.size() * sizeof(stepc_parameter_record)),
        "the parameters' records", false);
  }
  const void *shardList(int64_t operand) const override { return arguments[size_t(3 + operand)]; }

  std::vector<plan::CopyRow> rows;
  std::vector<void *> arguments;
  RowCopy copy;
};

/// A kernel that reads rows as one item. So no item is left out.
class PreparedCollect : public PreparedKernel {
public:
  using PreparedKernel::PreparedKernel;

  std::string place(const AddressOf &addressOf) override {
    arguments[0] = rows.data();
    return PreparedKernel::place(addressOf);
  }
  void declare(const AddUse &add) const override {
    add(arguments[0], int64_t(rows.size() * sizeof(int64_t)), "the command's rows", false);
    PreparedKernel::declare(add);
  }
};

} // namespace

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Collect &command) {
  auto made = std::make_unique<PreparedCollect>(instance, number);
  made->launch = instance.library.launch(command.kernel);
  made->rows.push_back(0);
  for (const plan::Collect::Run &run : command.runs) {
    const plan::Table &table = plan.tables[run.table];
    int64_t group = plan.segments[table.from.segment].group;
    for (const plan::CopyRow &row : tables[run.table].copies) {
      made->rows.push_back(recordOf(group, row.parameter));
      made->rows.push_back(beginOf(instance, run.source) + row.source * table.elementBytes);
      ++made->rows[0];
    }
  }
  made->arguments = {nullptr, arena(), arena() + beginOf(instance, command.target),
                     instance.running.records.data()};
  made->launch.items = 1;
  made->launch.grain = 1;
  made->findRecords();
  return made;
}

std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Copy &command) {
  const plan::Table &table = plan.tables[command.table];
  auto made = std::make_unique<PreparedCopy>(instance, number);
  RowCopy &copy = made->copy;
  // Wide elements are copied as words. Where they lie in a start's buffer is a multiple of a word, and not of
  // such an element.
  copy.elementBytes = plan::wordOf(table.elementBytes);
  int64_t words = table.elementBytes / copy.elementBytes;
  made->rows = tables[command.table].copies;
  for (plan::CopyRow &row : made->rows) {
    copy.elements += row.rows * row.cols;
    int64_t source = shiftOf(command.source, table.from, row.source),
            target = shiftOf(command.target, table.to, row.target);
    for (int64_t *field :
         {&row.cols, &row.source, &row.sourceStride, &row.target, &row.targetStride})
      *field *= words;
    row.source += source / copy.elementBytes;
    row.target += target / copy.elementBytes;
  }
  copy.fromShards = static_cast<void *const *>(shardsOf(command.source));
  copy.toShards = static_cast<void *const *>(shardsOf(command.target));
  copy.from = arena() + (copy.fromShards ? 0 : beginOf(instance, command.source));
  copy.to = arena() + (copy.toShards ? 0 : beginOf(instance, command.target));
  copy.launch = instance.library.launch(command.kernel);
  copy.launch.items = int64_t(made->rows.size());
  return made;
}

/// Behind the rows stand their lists of contributions. `list` of a row is the number of the first word of its
/// list.
std::unique_ptr<PreparedCommand> Preparer::operator()(const plan::Sum &command) {
  constexpr int64_t kWords = sizeof(plan::SumRow) / sizeof(int64_t);
  const plan::Table &table = plan.tables[command.table];
  const plan::RankTable &rows = tables[command.table];
  auto made = std::make_unique<PreparedKernel>(instance, number);
  made->launch = instance.library.launch(command.kernel);
  auto behind = int64_t(rows.sums.size()) * kWords;
  for (plan::SumRow row : rows.sums) {
    made->launch.elements += row.rows * row.cols * row.count;
    row.list += behind;
    const auto *words = reinterpret_cast<const int64_t *>(&row);
    made->rows.insert(made->rows.end(), words, words + kWords);
  }
  for (int64_t first : rows.lists)
    made->rows.push_back(first * table.elementBytes + shiftOf(command.source, table.from, first));
  made->arguments = {nullptr, arena() + beginOf(instance, command.source),
                     arena() + beginOf(instance, command.target), instance.running.records.data()};
  made->launch.stride = kWords;
  made->launch.items = int64_t(rows.sums.size());
  made->findRecords();
  return made;
}

} // namespace stepc::runtime
