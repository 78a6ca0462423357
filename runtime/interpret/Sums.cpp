//===- Sums.cpp - Adding up contributions of ranks --------------------------------===//
#include "runtime/interpret/Code.h"
#include "runtime/interpret/Storage.h"
#include "runtime/plan/Tables.h"
#include "stepc/kernel_abi.h"

#pragma STDC FP_CONTRACT OFF

namespace stepc::interpret {
namespace {

/// Adds up in f32 in the order of contributions, divides the sum, and rounds it once.
class SumCode : public Code {
public:
  explicit SumCode(const SumKernel &kernel) : kernel(kernel) {}

  int64_t arguments() const override { return 4; }

  void run(void *const *arguments, int64_t first, int64_t last) const override {
    const auto *rows = static_cast<const plan::SumRow *>(arguments[0]);
    const auto *words = static_cast<const int64_t *>(arguments[0]);
    const auto *from = static_cast<const std::byte *>(arguments[1]);
    auto *to = static_cast<std::byte *>(arguments[2]);
    int64_t bytes = bytesOf(kernel.type);
    if (kernel.reduction)
      return finish(rows + first, rows + last, words, from, to);
    for (; first < last; ++first) {
      const plan::SumRow &row = rows[first];
      for (int64_t r = 0; r < row.rows; ++r)
        for (int64_t c = 0; c < row.cols; ++c) {
          int64_t offset = (row.source + r * row.sourceStride + c) * bytes;
          float sum = read(kernel.type, from + words[row.list] + offset);
          for (int64_t i = 1; i < row.count; ++i)
            sum = sum + read(kernel.type, from + words[row.list + i] + offset);
          if (kernel.divisor > 1)
            sum = sum / float(kernel.divisor);
          write(kernel.type, sum, to + (row.target + r * row.targetStride + c) * bytes);
        }
    }
  }

private:
  /// Adds up parts of lines.
  void finish(const plan::SumRow *row, const plan::SumRow *last, const int64_t *words,
              const std::byte *from, std::byte *to) const {
    int64_t bytes = kernel.sums * sums::bytesOf(*kernel.reduction);
    for (; row != last; ++row)
      for (int64_t r = 0; r < row->rows; ++r)
        for (int64_t c = 0; c < row->cols; ++c) {
          std::vector<const void *> parts;
          for (int64_t i = 0; i < row->count; ++i)
            parts.push_back(from + words[row->list + i] +
                            (row->source + r * row->sourceStride + c) * bytes);
          store(to + (row->target + r * row->targetStride + c) * int64_t(sizeof(float)),
                sums::finish(*kernel.reduction, kernel.divisor, parts, kernel.sums));
        }
  }

  SumKernel kernel;
};

class CollectCode : public Code {
public:
  explicit CollectCode(const CollectKernel &kernel) : kernel(kernel) {}

  int64_t arguments() const override { return 4; }

  void run(void *const *arguments, int64_t first, int64_t last) const override {
    for (; first < last; ++first)
      stepc_rt_collect_sums(
          static_cast<int64_t>(kernel.reduction), static_cast<const int64_t *>(arguments[0]),
          arguments[1], static_cast<const stepc_parameter_record *>(arguments[3]), arguments[2]);
  }

private:
  CollectKernel kernel;
};

} // namespace

std::unique_ptr<Code> CollectKernel::code() const { return std::make_unique<CollectCode>(*this); }
std::unique_ptr<Code> SumKernel::code() const { return std::make_unique<SumCode>(*this); }

} // namespace stepc::interpret
