//===- Tiles.cpp - Products by lists of tiles -------------------------------------===//
#include "runtime/emulated/TileProducts.h"
#include "runtime/interpret/Code.h"

namespace stepc::interpret {
namespace {

class TilesCode : public Code {
public:
  explicit TilesCode(const plan::ProductForm &form) : form(form) {}

  int64_t arguments() const override { return 3; } // problems, tiles and lists
  void run(void *const *arguments, int64_t first, int64_t last) const override {
    runtime::multiplyTiles(form, arguments, first, last);
  }

private:
  plan::ProductForm form;
};

} // namespace

std::unique_ptr<Code> TilesKernel::code() const { return std::make_unique<TilesCode>(form); }

} // namespace stepc::interpret
