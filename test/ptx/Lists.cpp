//===- Lists.cpp - Lists of tiles to run -----------------------------------===//

#include "test/ptx/Lists.h"

namespace stepc::ptx {
namespace {

/// Both halves of a tile that have anything to store.
void addHalves(const Tile &tile, std::vector<Tile> &tiles) {
  // Of the four bits for 64 columns each, a half has two.
  constexpr uint32_t kFirst = 0x33333333;
  for (uint32_t half = 0; half < 2; ++half) {
    Tile made = tile;
    made.columns = tile.columns / 2;
    made.column += int32_t(half) * made.columns;
    made.stores = tile.stores >> 2 * half & kFirst;
    if (made.stores)
      tiles.push_back(made);
  }
}

} // namespace

plan::TileLists makeLists(const std::vector<plan::TiledProduct> &products, uint32_t blocks,
                          const ListOptions &options, Random &random) {
  plan::TileLists planned = plan::tileLists(products, options.lists, blocks);
  if (options.kind == ListKind::Planned && !options.edit)
    return planned;
  std::vector<Tile> tiles;
  bool cuts =
      options.kind == ListKind::Halves || (options.kind == ListKind::Drawn && random.below(2));
  for (const Tile &tile : planned.tiles)
    if (cuts && tile.columns == plan::kTileColumns &&
        (options.kind == ListKind::Halves || random.below(2)))
      addHalves(tile, tiles);
    else
      tiles.push_back(tile);
  if (options.kind == ListKind::Drawn)
    for (size_t i = tiles.size(); i > 1; --i)
      std::swap(tiles[i - 1], tiles[random.below(uint32_t(i))]);
  if (options.edit)
    options.edit(tiles);
  std::vector<std::vector<Tile>> lists(options.lists);
  for (size_t i = 0; i < tiles.size(); ++i)
    lists[options.kind == ListKind::Drawn ? random.below(options.lists) : i % options.lists]
        .push_back(tiles[i]);
  plan::TileLists made;
  for (const std::vector<Tile> &list : lists) {
    made.begins.push_back(int32_t(made.tiles.size()));
    made.tiles.insert(made.tiles.end(), list.begin(), list.end());
  }
  made.begins.push_back(int32_t(made.tiles.size()));
  return made;
}

} // namespace stepc::ptx
