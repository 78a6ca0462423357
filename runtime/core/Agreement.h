//===- Agreement.h - Whether ranks step with equal numbers -------*- C++ -*-===//
//
// Ranks that hold a parameter together must step it with equal hyperparameters and after equally many steps.
// Otherwise their replicas come to differ. Each rank adds up these numbers, with weights, to a seal per mesh.
// Each message carries a seal in its last plan::kSealBytes bytes. Ranks also exchange seals in their first
// step.
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

/// Four sums of numbers, each with weights of its own, modulo the largest prime below 2^64. If few numbers
/// differ between two ranks, the difference of their seals says which, and by how much (README.md).
struct Seal {
  static constexpr size_t kWords = plan::kSealBytes / sizeof(uint64_t);
  std::array<uint64_t, kWords> words{};

  /// False for the zero seal, which stands for numbers that the host cannot read, as those in a device's
  /// memory.
  bool isKnown() const { return *this != Seal{}; }
  bool operator==(const Seal &) const = default;
};

/// The numbers that a seal was added up from: a step count per parameter of the plan, and rows of `stride`
/// hyperparameters. `rowOf` gives the row of each parameter; if it is null, each parameter has a row of its
/// own.
struct SealedNumbers {
  const int64_t *steps;
  const double *rows;
  const int64_t *rowOf;
  int64_t stride;
  const double *rowOfParameter(int64_t p) const { return rows + (rowOf ? rowOf[p] : p) * stride; }
};

/// What the host knows of the step counts and hyperparameters of one rank, and the seals of these numbers.
class Agreement {
public:
  /// Finds the parameters to compare. A parameter is compared if every rank of its mesh holds elements of it,
  /// because a rank without elements may know nothing of it. Meshes without `worldRank` get a zero seal.
  void prepare(const Library &library, int64_t worldRank);

  /// Sets which row of hyperparameters each parameter has, from now on. An empty `rowOf` means that the host
  /// cannot read hyperparameters.
  void place(std::vector<int64_t> rowOf);
  /// Adds up the hyperparameters again if they have changed. A row has the length of the longest rule's.
  void readRows(const double *values);
  /// Adds up the step counts, one per parameter. If `areAlike`, each count has grown by `moved` since the
  /// last call, and one product updates the sums.
  void readSteps(const int64_t *steps, bool areAlike, int64_t moved);
  /// Says that step counts are not known. The next `readSteps` adds up all of them anew.
  void forgetSteps() { areStepsKnown = false; }

  /// The seal of the parameters on these meshes; zero if this rank is no member of one of the meshes.
  Seal of(const std::vector<int64_t> &meshes) const;

  /// Says how the numbers of the other rank, with seal `other`, differ from this rank's, with seal `own`.
  /// Both seals are of `meshes`. Example: "lr = 0.02 of 'w' on rank 3, and 0.01 on rank 0".
  std::string describe(const std::vector<int64_t> &meshes, const SealedNumbers &numbers,
                       const Seal &own, const Seal &other, int64_t otherRank,
                       int64_t ownRank) const;
  /// The hyperparameters that were read last, with these step counts.
  SealedNumbers numbers(const int64_t *steps) const {
    return {steps, rows.data(), rowOf.data(), stride};
  }
  /// The number of hyperparameters of the longest rule.
  int64_t longestRow() const { return stride; }

  /// Lists what kernels need to add up a seal per set of meshes: a row per set, without messages yet, the
  /// terms, and columns' weights. The seal of a set stays zero if this rank is no member of one of its
  /// meshes.
  void listTerms(const std::vector<std::vector<int64_t>> &sets, std::vector<stepc_seal_row> &rows,
                 std::vector<stepc_seal_term> &terms, std::vector<stepc_seal> &columns) const;

private:
  /// Parameters for which this rank has the same number in a column, and that number.
  struct Class {
    int64_t column;                  // 0: step counts; 1 + i: hyperparameter i of the route
    std::vector<int64_t> parameters; // of the plan, ascending
    uint64_t bits;                   // the number's bits
  };
  // A class, and the bits of the number that the other rank has in its place.
  using Change = std::pair<const Class *, uint64_t>;
  std::vector<Class> classes(const std::vector<int64_t> &meshes,
                             const SealedNumbers &numbers) const;
  static std::vector<Change> solve(const Seal &difference, const std::vector<Class> &classes);
  int64_t columns(int64_t parameter) const;

  const Library *library = nullptr;
  // The mesh of each parameter; -1 if the parameter is not compared, or if this rank is no member of the
  // mesh.
  std::vector<int64_t> meshOf;
  std::vector<int64_t> rowOf;
  std::vector<int64_t> columnsOf; // per row, how many hyperparameters it has
  std::vector<double> rows;       // as they were last added up
  int64_t stride = 0;
  bool areRowsKnown = false, areStepsKnown = false;
  // Per mesh: sums of weighted step counts, of the weights alone, and of weighted hyperparameters; and a
  // weight per row.
  std::vector<Seal> stepSums, stepWeights, rowSums;
  std::vector<std::vector<Seal>> rowWeights;
  std::vector<bool> isMember;
};

} // namespace stepc::runtime

#endif
