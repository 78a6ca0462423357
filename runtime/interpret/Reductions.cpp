//===- Reductions.cpp - Reductions of computed blocks -----------------------------------===//
#include "runtime/interpret/Code.h"

namespace stepc::interpret {
namespace {

class ReduceCode : public Code {
public:
  explicit ReduceCode(const ReduceKernel &kernel) : reduction(kernel.reduction) {}

  int64_t arguments() const override { return 3; } // the scratch, the source, the out

  void run(void *const *arguments, int64_t first, int64_t last) const override {
    reduction.run(sums::Phase::Whole, arguments[0], arguments[1],
                  static_cast<float *>(arguments[2]), first, last);
  }

private:
  sums::BlockReduction reduction;
};

} // namespace

std::unique_ptr<Code> ReduceKernel::code() const { return std::make_unique<ReduceCode>(*this); }

} // namespace stepc::interpret
