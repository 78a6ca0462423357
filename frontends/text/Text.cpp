#include "frontends/text/Text.h"
#include "llvm/ADT/StringExtras.h"
#include <vector>

using llvm::StringRef;

StringRef stepc::text::withoutByteOrderMark(StringRef text) {
  text.consume_front("\xEF\xBB\xBF");
  return text;
}

/// Letters inserted, left out, replaced, or swapped with their neighbour; case
/// does not count.
static unsigned editDistance(StringRef a, StringRef b) {
  // distance[i][j]: from the first i letters of `a` to the first j of `b`.
  std::vector<std::vector<unsigned>> distance(a.size() + 1, std::vector<unsigned>(b.size() + 1, 0));
  auto same = [&](size_t i, size_t j) { return llvm::toLower(a[i]) == llvm::toLower(b[j]); };
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      unsigned &best = distance[i][j];
      if (i == 0 || j == 0) {
        best = static_cast<unsigned>(i + j);
        continue;
      }
      best = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
                       distance[i - 1][j - 1] + !same(i - 1, j - 1)});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
        best = std::min(best, distance[i - 2][j - 2] + 1);
    }
  return distance[a.size()][b.size()];
}

StringRef stepc::text::nearestName(StringRef name, llvm::ArrayRef<StringRef> candidates) {
  // A third of the letters may differ. In a name of two letters that is none, so one may, but
  // short names must begin alike: 'mo' is 'mu', and 'bog' is not 'log'.
  constexpr size_t longest = 64, isShort = 3;
  if (name.size() < 2 || name.size() > longest)
    return StringRef();
  unsigned best = static_cast<unsigned>(std::max<size_t>(name.size() / 3, 1)) + 1;
  StringRef nearest;
  for (StringRef candidate : candidates) {
    if (candidate.empty() || candidate.size() > longest ||
        (name.size() <= isShort && llvm::toLower(candidate[0]) != llvm::toLower(name[0])))
      continue;
    unsigned distance = editDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}
