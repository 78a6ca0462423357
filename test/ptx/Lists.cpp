//===- Lists.cpp - Lists of tiles to run -----------------------------------===//

#include "test/ptx/Lists.h"

namespace stepc::ptx {
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
      for (const Tile &half : plan::halves(tile))
        tiles.push_back(half);
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
    auto first = int32_t(made.tiles.size());
    made.tiles.insert(made.tiles.end(), list.begin(), list.end());
    made.lists.push_back({first, int32_t(made.tiles.size()), int32_t(products.size()), 0});
  }
  return made;
}

} // namespace stepc::ptx
