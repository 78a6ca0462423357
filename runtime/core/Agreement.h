//===- Agreement.h - Whether ranks step with equal numbers -------*- C++ -*-===//
//
// Ranks that hold a parameter together must step it with equal hyperparameters and after equally many steps:
// otherwise their replicas part. Each rank adds up these numbers, with weights, to a seal per mesh. Seals
// travel in messages (plan::kSealBytes of each), and when ranks step for the first time.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_CORE_AGREEMENT_H
#define STEPC_RUNTIME_CORE_AGREEMENT_H

#include "runtime/core/Library.h"
#include "runtime/plan/Tables.h"
#include "stepc/kernel_abi.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stepc::runtime {

/// Sums of numbers with four lists of weights, modulo the largest prime below 2^64. The difference of two
/// seals says which numbers differ and by how much, where these are few (README.md).
struct Seal {
  static constexpr size_t kWords = plan::kSealBytes / sizeof(uint64_t);
  std::array<uint64_t, kWords> words{};

  /// The host knows no seal of numbers in a device's memory.
  bool isKnown() const { return *this != Seal{}; }
  bool operator==(const Seal &) const = default;
};

/// What a seal was added up from: step counts, one per parameter of the plan, and hyperparameters, in rows of
/// `stride`. `rowOf` says which row is a parameter's; null: each has its own.
struct SealedNumbers {
  const int64_t *steps;
  const double *rows;
  const int64_t *rowOf;
  int64_t stride;
  const double *rowOfParameter(int64_t p) const { return rows + (rowOf ? rowOf[p] : p) * stride; }
};

/// The host's knowledge of one rank's numbers.
class Agreement {
public:
  /// Finds the parameters that are compared: those of which each rank of their mesh holds elements, because a
  /// rank that holds none may know nothing of the parameter. Meshes without `worldRank` have no seal.
  void prepare(const Library &library, int64_t worldRank);

  /// From here on each parameter has the hyperparameters of a row, which `rowOf` numbers. None: the host has
  /// no numbers to read.
  void place(std::vector<int64_t> rowOf);
  /// Adds up the hyperparameters again if they have changed. Rows are as long as the longest of a rule.
  void readRows(const double *values);
  /// Adds up the step counts, one per parameter. If all are by `moved` larger than last time, that is enough.
  void readSteps(const int64_t *steps, bool areAlike, int64_t moved);
  /// Step counts are not known: those that are read next are added up anew.
  void forgetSteps() { areStepsKnown = false; }

  /// The seal of parameters on any of these meshes, which this rank is one of.
  Seal of(const std::vector<int64_t> &meshes) const;

  /// How the numbers of this rank, whose seal is `own`, differ from those of a rank whose seal is `other`, on
  /// the same meshes: "lr = 0.02 of 'w' on rank 3, and 0.01 on rank 0".
  std::string describe(const std::vector<int64_t> &meshes, const SealedNumbers &numbers,
                       const Seal &own, const Seal &other, int64_t otherRank,
                       int64_t ownRank) const;
  /// What was read last, with these step counts.
  SealedNumbers numbers(const int64_t *steps) const {
    return {steps, rows.data(), rowOf.data(), stride};
  }
  /// Hyperparameters of the longest rule.
  int64_t longestRow() const { return stride; }

  /// How kernels add up a seal of each set of meshes: a row per set, which names no message yet, the terms,
  /// and the weights of columns. The seal is zero where this rank is no member of a mesh of the set.
  void listTerms(const std::vector<std::vector<int64_t>> &sets, std::vector<stepc_seal_row> &rows,
                 std::vector<stepc_seal_term> &terms, std::vector<stepc_seal> &columns) const;

private:
  /// Parameters of which this rank has one number, and what it is.
  struct Class {
    int64_t column;                  // 0: step counts; 1 + i: hyperparameter i of the route
    std::vector<int64_t> parameters; // of the plan, ascending
    uint64_t bits;                   // of the number
  };
  using Change = std::pair<const Class *, uint64_t>; // and the bits that the other rank has
  std::vector<Class> classes(const std::vector<int64_t> &meshes,
                             const SealedNumbers &numbers) const;
  static std::vector<Change> solve(const Seal &difference, const std::vector<Class> &classes);
  int64_t columns(int64_t parameter) const;

  const Library *library = nullptr;
  std::vector<int64_t> meshOf; // per parameter; -1: it is not compared, or this rank is no member
  std::vector<int64_t> rowOf;
  std::vector<int64_t> columnsOf; // per row, how many hyperparameters it has
  std::vector<double> rows;       // as they were added up
  int64_t stride = 0;
  bool areRowsKnown = false, areStepsKnown = false;
  // Per mesh: sums of step counts, of their weights, and of hyperparameters; and the weights of its rows.
  std::vector<Seal> stepSums, stepWeights, rowSums;
  std::vector<std::vector<Seal>> rowWeights;
  std::vector<bool> isMember;
};

} // namespace stepc::runtime

#endif
