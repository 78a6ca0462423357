//===- Tiles.cpp - Products by lists of tiles -------------------------------------===//
#include "runtime/emulated/TileProducts.h"
#include "runtime/interpret/Code.h"

namespace stepc::interpret {
namespace {

class TilesCode : public Code {
public:
  explicit TilesCode(const TilesKernel &kernel) : kernel(kernel) {}

  int64_t arguments() const override { return 3; } // problems, tiles and lists
  void run(void *const *arguments, int64_t first, int64_t last) const override {
    runtime::multiplyTiles(kernel, arguments, first, last);
  }

private:
  TilesKernel kernel;
};

} // namespace

std::unique_ptr<Code> TilesKernel::code() const { return std::make_unique<TilesCode>(*this); }

} // namespace stepc::interpret
