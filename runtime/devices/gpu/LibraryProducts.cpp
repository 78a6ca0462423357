//===- LibraryProducts.cpp - Products by cuBLASLt, at pinned algorithms -----===//
//
// A block is stored row by row. cuBLASLt reads it column by column, and so sees every matrix transposed.
// Therefore it is called for outᵀ = rhsᵀ · lhsᵀ, instead of out = lhs · rhs. Its A is the right
// operand, its B the left one, and its rows are our columns.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/gpu/LibraryProducts.h"
#include "runtime/plan/Fnv1a.h"
#include "runtime/plan/Pinned.h"
#include "runtime/text/Text.h"

namespace stepc::runtime {

using namespace cublaslt;

struct LibraryProducts::Product {
  explicit Product(const CublasLt &lt) : lt(lt) {}
  Product(const Product &) = delete;
  ~Product() {
    for (Layout layout : {a, b, c, d})
      if (layout)
        lt.cublasLtMatrixLayoutDestroy(layout);
    if (operation)
      lt.cublasLtMatmulDescDestroy(operation);
  }

  const CublasLt &lt;
  Operation operation = nullptr;
  Layout a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  Algorithm algorithm{};
  float alpha = 1, beta = 0;
  bool hasAddend = false;
  size_t workspaceBytes = 0;
  std::string name; ///< "a product of 48 x 16 x 16 by algorithm 66 of cuBLASLt 13.0.2"
};

LibraryProducts::LibraryProducts() = default;
LibraryProducts::~LibraryProducts() { close(); }

namespace {

int typeOf(plan::DType type) {
  return type == plan::DType::F32 ? kFloat32 : type == plan::DType::BF16 ? kBfloat16 : kFloat16;
}

/// The layout of an operand's blocks as cuBLASLt sees it: transposed, column by column.
Status makeLayout(const CublasLt &lt, Layout &layout, const plan::Operand &operand,
                  int64_t blocks) {
  auto count = int32_t(blocks);
  int64_t stride = operand.rows * operand.cols;
  if (Status wrong =
          lt.cublasLtMatrixLayoutCreate(&layout, typeOf(operand.type), uint64_t(operand.cols),
                                        uint64_t(operand.rows), operand.cols))
    return wrong;
  if (Status wrong =
          lt.cublasLtMatrixLayoutSetAttribute(layout, kBatchCount, &count, sizeof(count)))
    return wrong;
  return lt.cublasLtMatrixLayoutSetAttribute(layout, kBatchStride, &stride, sizeof(stride));
}

Status setTransposed(const CublasLt &lt, Operation operation, int attribute, bool isTransposed) {
  int32_t value = kTransposed;
  return isTransposed
             ? lt.cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value))
             : 0;
}

Status configure(const CublasLt &lt, Algorithm &algorithm, const plan::PinnedAlgorithm &pinned) {
  Status wrong = 0;
  auto set = [&](auto type, int attribute, int64_t value) {
    auto number = decltype(type)(value);
    if (!wrong)
      wrong =
          lt.cublasLtMatmulAlgoConfigSetAttribute(&algorithm, attribute, &number, sizeof(number));
  };
  set(uint32_t(), kTile, pinned.tile);
  set(uint32_t(), kStages, pinned.stages);
  set(uint32_t(), kSplitK, 1);
  set(uint32_t(), kReductionScheme, 0);
  set(uint32_t(), kSwizzling, pinned.swizzling);
  set(uint32_t(), kCustomOption, pinned.customOption);
  set(uint16_t(), kInnerShape, pinned.innerShape);
  set(uint16_t(), kClusterShape, pinned.clusterShape);
  return wrong;
}

} // namespace

std::string LibraryProducts::open(const plan::Plan &plan, int64_t chip, int64_t multiprocessors) {
  here.chip = chip;
  here.multiprocessors = multiprocessors;
  bool isNeeded = false;
  for (const plan::Command &command : plan.commands)
    if (const auto *product = std::get_if<plan::Product>(&command))
      for (const plan::PinnedAlgorithm &each : product->pinned)
        isNeeded |= each.chip == chip && each.multiprocessors == multiprocessors;
  if (!isNeeded || !(lt = cublasLt()))
    return {};
  here.version = int64_t(lt->cublasLtGetVersion());
  plan::Fnv1a hash; // hashes products that have an algorithm here
  for (size_t i = 0; i < plan.commands.size(); ++i) {
    const auto *product = std::get_if<plan::Product>(&plan.commands[i]);
    if (const plan::PinnedAlgorithm *one = product ? find(*product) : nullptr) {
      for (int64_t number :
           {int64_t(i), one->cublasLt, one->chip, one->multiprocessors, one->algorithm, one->tile,
            one->stages, one->swizzling, one->customOption, one->innerShape, one->clusterShape})
        hash.number(uint64_t(number));
      here.choices = hash.state;
    }
  }
  if (!here.choices)
    return {};
  Status wrong = lt->cublasLtCreate(&handle);
  return wrong ? "opening cuBLASLt " + plan::cublasLtVersion(here.version) +
                     " failed: " + describe(wrong)
               : "";
}

void LibraryProducts::close() {
  products.clear();
  if (handle)
    lt->cublasLtDestroy(handle);
  handle = nullptr;
}

const plan::PinnedAlgorithm *LibraryProducts::find(const plan::Product &product) const {
  for (const plan::PinnedAlgorithm &each : product.pinned)
    if (each.cublasLt == here.version && each.chip == here.chip &&
        each.multiprocessors == here.multiprocessors)
      return &each;
  return nullptr;
}

std::string LibraryProducts::describe(Status status) const {
  const char *name = lt->cublasLtGetStatusName(status);
  return name ? name : "status " + std::to_string(status);
}

std::string LibraryProducts::make(Product &made, const BatchWork &work,
                                  const plan::PinnedAlgorithm &pinned) {
  const plan::Product &product = *work.planned;
  const plan::Operand &lhs = product.lhs, &rhs = product.rhs, &out = product.out;
  auto [m, n, k] = product.sizes();
  made.name = format("a product of %lld x %lld x %lld by algorithm %lld of cuBLASLt %s",
                     (long long)m, (long long)n, (long long)k, (long long)pinned.algorithm,
                     plan::cublasLtVersion(pinned.cublasLt).c_str());
  made.alpha = float(product.alpha);
  made.beta = float(product.beta);
  made.hasAddend = product.addend.has_value();
  made.workspaceBytes = size_t(pinned.workspaceBytes);
  if (work.blocks > INT32_MAX)
    return format("expected at most %d blocks of %s, found %lld", INT32_MAX, made.name.c_str(),
                  (long long)work.blocks);
  for (size_t i = 1; i <= product.operands().size(); ++i)
    if (reinterpret_cast<uintptr_t>(work.arguments[i]) % uint64_t(pinned.alignment))
      return format("expected operands at multiples of %lld bytes for %s, found one at %p",
                    (long long)pinned.alignment, made.name.c_str(), work.arguments[i]);

  Status wrong = 0;
  auto then = [&](auto &&call) { wrong = wrong ? wrong : call(); };
  int in = typeOf(lhs.type), to = typeOf(out.type);
  then([&] { return lt->cublasLtMatmulDescCreate(&made.operation, kCompute32, kFloat32); });
  then([&] { return setTransposed(*lt, made.operation, kTransposeA, product.transposeRhs); });
  then([&] { return setTransposed(*lt, made.operation, kTransposeB, product.transposeLhs); });
  then([&] { return makeLayout(*lt, made.a, rhs, work.blocks); });
  then([&] { return makeLayout(*lt, made.b, lhs, work.blocks); });
  then(
      [&] { return makeLayout(*lt, made.c, made.hasAddend ? *product.addend : out, work.blocks); });
  then([&] { return makeLayout(*lt, made.d, out, work.blocks); });
  then([&] {
    return lt->cublasLtMatmulAlgoInit(handle, kCompute32, kFloat32, in, in, to, to,
                                      int(pinned.algorithm), &made.algorithm);
  });
  then([&] { return configure(*lt, made.algorithm, pinned); });
  Checked checked{};
  then([&] {
    return lt->cublasLtMatmulAlgoCheck(handle, made.operation, made.a, made.b, made.c, made.d,
                                       &made.algorithm, &checked);
  });
  if (wrong)
    return made.name + " is refused: " + describe(wrong);
  if (checked.workspaceSize > made.workspaceBytes)
    return format("expected %s to need at most %zu bytes of workspace, found %zu",
                  made.name.c_str(), made.workspaceBytes, checked.workspaceSize);
  return {};
}

std::string LibraryProducts::prepare(BatchWork &work, StreamHandle stream) {
  const plan::PinnedAlgorithm *pinned = handle && work.planned ? find(*work.planned) : nullptr;
  if (!pinned || work.blocks == 0)
    return {};
  auto made = std::make_unique<Product>(*lt);
  if (std::string wrong = make(*made, work, *pinned); !wrong.empty())
    return wrong;
  work.product = int64_t(products.size());
  products.push_back(std::move(made));
  return multiply(work, stream);
}

std::string LibraryProducts::multiply(const BatchWork &work, StreamHandle stream) const {
  const Product &one = *products[size_t(work.product)];
  void *const *arguments = work.arguments; // the scratch, left, right, addend if there is one, out
  void *out = arguments[one.hasAddend ? 4 : 3];
  Status wrong =
      lt->cublasLtMatmul(handle, one.operation, &one.alpha, arguments[2], one.a, arguments[1],
                         one.b, &one.beta, one.hasAddend ? arguments[3] : out, one.c, out, one.d,
                         &one.algorithm, arguments[0], one.workspaceBytes, stream);
  return wrong ? one.name + " failed: " + describe(wrong) : "";
}

} // namespace stepc::runtime
