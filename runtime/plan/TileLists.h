//===- TileLists.h - Which cluster computes which tiles ---------*- C++ -*-===//
//
// A launch of a kernel with Grid::Lists has one list of tiles for each cluster of GPU blocks. The lists are
// made when an instance is created, for the number of clusters that the GPU has. Bits do not depend on them.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_TILELISTS_H
#define STEPC_RUNTIME_PLAN_TILELISTS_H

#include "runtime/plan/commands/Matrix.h"
#include "stepc/kernel_abi.h"

#include <array>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

namespace stepc::plan {

/// A stack of products m × n of k steps in a launch.
struct TiledProduct {
  int64_t matrices = 0, m = 0, n = 0, k = 0;
  bool symmetric = false, hasAddend = false, hasShift = false;
};

/// Rows and columns of the parts of a tile that are stored together.
inline constexpr int64_t kTilePart = 64;
/// Rows of a tile for each block of a cluster, and columns of a whole tile. Tiles of half as many columns
/// end lists, so that no cluster waits long for the last one.
inline constexpr int64_t kTileRows = 128, kTileColumns = 256;
/// GPU blocks of a cluster. Tests also have clusters of one block.
inline constexpr int64_t kTileBlocks = 2;
/// Columns of a box, which one tensor load or store moves: rows of 128 bytes, which the swizzle turns.
constexpr int64_t boxColumns(DType type) { return type == DType::F32 ? 32 : 64; }
/// Steps of k of one stage, the stages that a kernel's ring has, and the least stages of a tile.
inline constexpr int64_t kTileSteps = 64, kTileStages = 4, kLeastTileStages = 5;

/// Times of lists of tiles, in stages of whole tiles.
struct ListTimes {
  int64_t tiles = 0;
  double longest = 0;    ///< of the longest list
  double evenShare = 0;  ///< of all lists together, divided by their number
  double wholeShare = 0; ///< as evenShare, if no tile were cut into halves
};

struct TileLists {
  std::vector<stepc_product_tile> tiles; ///< list by list
  std::vector<stepc_tile_list> lists;
  ListTimes times;

  int64_t count() const { return static_cast<int64_t>(lists.size()); }
};

/// The halves of a whole tile, each of 128 columns, that store anything.
struct TileHalves {
  std::array<stepc_product_tile, 2> parts;
  size_t count = 0;

  const stepc_product_tile *begin() const { return parts.data(); }
  const stepc_product_tile *end() const { return parts.data() + count; }
  size_t size() const { return count; }
};
TileHalves halves(const stepc_product_tile &tile);

/// Shares the tiles of products out to `lists` clusters of `cluster` blocks each. Product i of the result's
/// tiles is number i of `products`.
TileLists tileLists(std::span<const TiledProduct> products, int64_t lists, int64_t cluster);

/// The times of the lists that tileLists makes, for clusters of one size. They depend neither on the order of
/// the products nor on whether equal products are one. The tiles of a shape are found once, and of all
/// matrices only one is looked at.
class ListTimer {
public:
  explicit ListTimer(int64_t cluster) : cluster(cluster) {}
  ListTimes times(std::span<const TiledProduct> products, int64_t lists);

private:
  /// m, n, k and symmetry.
  using Shape = std::tuple<int64_t, int64_t, int64_t, bool>;
  int64_t cluster;
  std::map<Shape, std::shared_ptr<const std::vector<stepc_product_tile>>> known;
};

/// The tiles of a launch are numbered by 32 bits. `mostTiles` is a bound of those of matrices of so many rows
/// and columns, which counts half tiles.
inline constexpr double kMostTiles = 0x7fffffff;
double mostTiles(int64_t rows, int64_t columns, int64_t matrices);

/// The variable of a GPU's module that points to a word of the host, if the waits of a kernel of tiles are
/// bounded. There a thread that has waited too long writes one more than its barrier's number.
inline std::string stuckSymbol(const std::string &kernel) { return kernel + "_stuck"; }

/// Why a kernel of tiles cannot have a form, or an addend of a type; empty if it can. Operands have one type
/// of 16 bits, and the result has it too or is f32.
std::string checkTileForm(const ProductForm &form, std::optional<DType> addend = {});
/// The form of a kernel of tiles as a sum of STEPC_TILES_* (kernel_abi.h), and back.
inline int32_t tileBits(const ProductForm &form) {
  return (form.lhs == DType::F16 ? STEPC_TILES_OF_F16 : 0) |
         (form.transposeLhs ? STEPC_TILES_TRANSPOSE_LHS : 0) |
         (form.transposeRhs ? STEPC_TILES_TRANSPOSE_RHS : 0) |
         (form.symmetric ? STEPC_TILES_SYMMETRIC : 0) |
         (form.out == DType::F32 ? STEPC_TILES_TO_F32 : 0);
}

inline ProductForm tileForm(int32_t bits) {
  auto has = [&](int32_t bit) { return (bits & bit) != 0; };
  DType type = has(STEPC_TILES_OF_F16) ? DType::F16 : DType::BF16;
  return {type,
          type,
          has(STEPC_TILES_TO_F32) ? DType::F32 : type,
          has(STEPC_TILES_TRANSPOSE_LHS),
          has(STEPC_TILES_TRANSPOSE_RHS),
          has(STEPC_TILES_SYMMETRIC)};
}

/// A matrix as it is stored.
struct StoredMatrix {
  DType type = DType::BF16;
  int64_t rows = 0, cols = 0;

  StoredMatrix() = default;
  StoredMatrix(DType type, int64_t rows, int64_t cols) : type(type), rows(rows), cols(cols) {}
  StoredMatrix(const Operand &batch) : StoredMatrix(batch.type, batch.rows, batch.cols) {}
};
struct TiledOperands {
  StoredMatrix lhs, rhs;
  std::optional<StoredMatrix> addend;
  StoredMatrix out;
};
/// Why tensor maps and kernels of tiles cannot take these operands of a product; empty if they can. Types are
/// as checkTileForm says, and rows are whole 16 bytes. A result of f32 has no addend, because no program adds
/// to one.
std::string checkTiles(const TiledOperands &operands);
TiledOperands tiledOperands(const Product &product);

/// Why a kernel of tiles cannot compute a product of `matrices` matrices; empty if it can.
std::string checkTiled(const Product &product, int64_t matrices);

} // namespace stepc::plan

#endif
