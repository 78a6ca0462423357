//===- SideBySideTest.cpp - Which products of chains stand side by side -----===//

#include "passes/cost/SideBySide.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace stepc::cost {
namespace {

using Forms = std::vector<int64_t>;

/// Each product waits for the one before it.
Chain inTurn(const Forms &forms) {
  Chain chain;
  for (int64_t form : forms)
    chain.push_back({form, chain.empty() ? std::vector<size_t>{} : std::vector{chain.size() - 1}});
  return chain;
}

/// Expects that products stand behind those that they wait for, and that a column has one form. Returns the
/// number of columns.
size_t expectOrder(const std::vector<Chain> &chains) {
  std::vector<std::vector<size_t>> columns = columnsOf(chains);
  EXPECT_EQ(columns.size(), chains.size());
  std::map<size_t, int64_t> formOf;
  for (size_t chain = 0; chain < chains.size(); ++chain) {
    EXPECT_EQ(columns[chain].size(), chains[chain].size());
    for (size_t at = 0; at < chains[chain].size(); ++at) {
      const ChainProduct &product = chains[chain][at];
      size_t column = columns[chain][at];
      for (size_t before : product.after)
        EXPECT_GT(column, columns[chain][before]);
      EXPECT_EQ(formOf.try_emplace(column, product.form).first->second, product.form);
    }
  }
  if (!formOf.empty()) // no column is empty
    EXPECT_EQ(formOf.rbegin()->first + 1, formOf.size());
  return formOf.size();
}
size_t expectOrder(const std::vector<Forms> &forms) {
  std::vector<Chain> chains;
  for (const Forms &each : forms)
    chains.push_back(inTurn(each));
  return expectOrder(chains);
}

Forms repeated(Forms forms, int times) {
  Forms all;
  for (int i = 0; i < times; ++i)
    all.insert(all.end(), forms.begin(), forms.end());
  return all;
}

TEST(SideBySide, EqualChainsShareAllColumns) {
  Forms chain = repeated({0, 1, 2}, 5);
  EXPECT_EQ(expectOrder(std::vector<Forms>{chain, chain, chain}), chain.size());
  EXPECT_EQ(expectOrder(std::vector<Forms>{}), 0);
  EXPECT_EQ(expectOrder(std::vector<Forms>{Forms(), Forms()}), 0);
  EXPECT_EQ(expectOrder(std::vector<Forms>{Forms(), Forms{3}}), 1);
}

TEST(SideBySide, AFormThatOneChainHasTakesAColumn) {
  EXPECT_EQ(expectOrder(std::vector<Forms>{repeated({0, 1, 2}, 5), repeated({3, 1, 2}, 5)}), 20);
}

TEST(SideBySide, ChainsOfUnequalLengthShareWhatTheyCan) {
  // The standard form of orthogonalize, and the Gram form with a restart, of wide and of tall matrices.
  Forms standard = repeated({0, 1, 2}, 5);
  auto gram = [](int64_t product) {
    Forms forms = {product};
    for (int64_t squares : {5, 9}) {
      for (int64_t i = 0; i < squares; ++i)
        forms.push_back(1);
      forms.push_back(2);
      if (squares == 5)
        forms.push_back(product);
    }
    return forms;
  };
  EXPECT_EQ(gram(0).size(), 18);
  EXPECT_EQ(expectOrder(std::vector<Forms>{standard, gram(0)}), 24);
  EXPECT_EQ(expectOrder(std::vector<Forms>{standard, gram(0), gram(3), standard}), 26);
}

TEST(SideBySide, ProductsThatDoNotWaitShareAColumn) {
  // The third product waits for the first, and could stand beside the second.
  Chain chain = {{0, {}}, {1, {0}}, {1, {0}}, {1, {1, 2}}};
  EXPECT_EQ(columnsOf(std::vector<Chain>{chain}), (std::vector<std::vector<size_t>>{{0, 1, 1, 2}}));
  // It is of another form.
  chain[2].form = 2;
  EXPECT_EQ(expectOrder(std::vector<Chain>{chain}), 4);
  EXPECT_EQ(expectOrder(std::vector<Chain>{chain, inTurn({0, 1, 2, 1})}), 4);
}

TEST(SideBySide, DrawnPairsHaveAsFewColumnsAsPossible) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    auto draw = [&] {
      Forms forms(random() % 7);
      for (int64_t &form : forms)
        form = int64_t(random() % 3);
      return forms;
    };
    Forms a = draw(), b = draw();
    // A sequence with both in it: tries every one, the shortest first.
    size_t least = std::max(a.size(), b.size());
    auto has = [](const Forms &all, const Forms &part) {
      size_t found = 0;
      for (int64_t form : all)
        found += found < part.size() && form == part[found];
      return found == part.size();
    };
    auto exists = [&](size_t length) {
      Forms all(length, 0);
      for (;;) {
        if (has(all, a) && has(all, b))
          return true;
        size_t at = 0;
        while (at < length && ++all[at] == 3)
          all[at++] = 0;
        if (at == length)
          return false;
      }
    };
    while (!exists(least))
      ++least;
    EXPECT_EQ(expectOrder(std::vector<Forms>{a, b}), least) << round;
    expectOrder(std::vector<Forms>{a, b, draw(), draw(), a});
  }
}

} // namespace
} // namespace stepc::cost
