//===- Parameters.cpp - Kernels over parameters ---------------------------------===//
#include "runtime/interpret/BodyCode.h"
#include "runtime/interpret/Code.h"
#include "runtime/interpret/Storage.h"
#include "stepc/kernel_abi.h"

#include <algorithm>
#include <numeric>

namespace stepc::interpret {
namespace {

class ParameterCode : public Code {
public:
  explicit ParameterCode(const ParameterKernel &kernel) : kernel(kernel), body(kernel.body) {}

  int64_t arguments() const override { return 3; }

  void run(void *const *arguments, int64_t first, int64_t last) const override {
    Registers registers;
    int64_t lanes = std::min(body.lanes(), last - first);
    body.begin(registers, lanes);
    body.runUniform(registers, lanes);
    for (; first < last; first += lanes)
      runStrip(arguments, first, std::min(lanes, last - first), registers);
  }

private:
  /// A row of the table: the number of a record, the byte of the workspace at which its scalars begin, and
  /// the bytes at which numbers of the model begin.
  struct Row {
    const int64_t *words;
    int64_t record() const { return words[0]; }
    int64_t scalars() const { return words[1]; }
    int64_t numbers(size_t operand) const { return words[2 + operand]; }
  };

  void runStrip(void *const *arguments, int64_t first, int64_t count, Registers &registers) const {
    auto rowAt = [&](int64_t i) {
      return Row{static_cast<const int64_t *>(arguments[0]) +
                 (first + i) * int64_t(2 + kernel.numbers.size())};
    };
    auto *workspace = static_cast<std::byte *>(arguments[1]);
    const auto *records = static_cast<const stepc_parameter_record *>(arguments[2]);
    size_t numbers = std::accumulate(kernel.numbers.begin(), kernel.numbers.end(), size_t(0));
    size_t hyperparameters = kernel.inputs.size() - 4 - numbers;
    for (int64_t i = 0; i < count; ++i) {
      Row row = rowAt(i);
      const stepc_parameter_record &record = records[row.record()];
      auto give = [&](size_t input, double value) {
        store(body.at(registers, kernel.inputs[input]) + i * int64_t(sizeof(double)), value);
      };
      for (size_t h = 0; h < hyperparameters; ++h)
        give(h, record.hyperparameters[h]);
      give(hyperparameters, double(*record.steps_taken + 1));
      give(hyperparameters + 1, record.rows);
      give(hyperparameters + 2, record.cols);
      give(hyperparameters + 3, record.numel);
      for (size_t operand = 0, input = hyperparameters + 4; operand < kernel.numbers.size();
           ++operand)
        for (int64_t n = 0; n < kernel.numbers[operand]; ++n)
          give(input++,
               double(load<float>(workspace + row.numbers(operand) + n * int64_t(sizeof(float)))));
    }
    body.run(registers, count);
    for (int64_t i = 0; i < count; ++i)
      for (size_t k = 0; k < kernel.outputs.size(); ++k)
        store(workspace + rowAt(i).scalars() + int64_t(k * sizeof(float)),
              load<float>(body.at(registers, kernel.outputs[k]) + i * int64_t(sizeof(float))));
  }

  ParameterKernel kernel;
  BodyCode body;
};

} // namespace

std::unique_ptr<Code> ParameterKernel::code() const {
  return std::make_unique<ParameterCode>(*this);
}

} // namespace stepc::interpret
