//===- Transposes.cpp - Transposes of computed blocks ----------------------------------===//
#include "runtime/interpret/Code.h"

#include <algorithm>

namespace stepc::interpret {
namespace {

template <typename Word> class TransposeCode : public Code {
public:
  explicit TransposeCode(const TransposeKernel &kernel) : kernel(kernel) {}

  int64_t arguments() const override { return 3; } // the scratch, the source, the out

  void run(void *const *arguments, int64_t first, int64_t last) const override {
    const auto &[type, rows, cols] = kernel;
    constexpr int64_t band = TransposeKernel::kRowsPerItem;
    int64_t bands = kernel.itemsPerBlock();
    for (int64_t item = first; item < last; ++item) {
      int64_t block = item / bands * rows * cols, begin = item % bands * band;
      const Word *from = static_cast<const Word *>(arguments[1]) + block;
      Word *to = static_cast<Word *>(arguments[2]) + block;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = begin; col < std::min(begin + band, cols); ++col)
          to[col * rows + row] = from[row * cols + col];
    }
  }

private:
  TransposeKernel kernel;
};

} // namespace

std::unique_ptr<Code> TransposeKernel::code() const {
  if (type == plan::DType::F32)
    return std::make_unique<TransposeCode<uint32_t>>(*this);
  return std::make_unique<TransposeCode<uint16_t>>(*this);
}

} // namespace stepc::interpret
