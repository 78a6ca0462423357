//===- Model.h - Parameters, where they lie, and who computes ---*- C++ -*-===//
//
// What a plan knows of the model before anything is scheduled: types, meshes, rules, parameters, and
// their groups with placements and hops. Sizes are in elements.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_MODEL_MODEL_H
#define STEPC_RUNTIME_MODEL_MODEL_H

#include "runtime/model/Enum.h"

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepc::plan {

/// Storage types. The values are part of the serialized form.
enum class DType : int64_t { F32 = 0, BF16 = 1, F16 = 2, F64 = 3 };
template <>
inline constexpr auto kNames<DType> =
    std::to_array<std::string_view>({"f32", "bf16", "f16", "f64"});
int64_t byteSize(DType type);

/// The shape of a value beside its matrix block of R × C elements: two extents, of which each is a constant
/// or the block's.
struct ValueKind {
  /// An extent of the block in the place of a constant. The values are part of the serialized form.
  enum OfBlock : int64_t { OfRows = -1, OfCols = -2, OfSmaller = -3 };

  constexpr ValueKind() = default;
  constexpr ValueKind(int64_t rows, int64_t cols) : rows(rows), cols(cols) {}

  int64_t rows = OfRows, cols = OfCols; ///< constants above 0, or an OfBlock

  // Names for frequent shapes.
  static const ValueKind Full; ///< R × C
  static const ValueKind Rows; ///< R × 1
  static const ValueKind Cols; ///< 1 × C
  static const ValueKind One;  ///< 1 × 1
  static const ValueKind Gram; ///< n × n, with n the smaller of R and C

  /// Whether states may have the shape, which then stand in shards: full, rows, cols or one. Values of all
  /// other shapes exist only where whole blocks are computed.
  constexpr bool isStored() const {
    return (rows == OfRows || rows == 1) && (cols == OfCols || cols == 1);
  }

  /// Rows and columns, for a block of such extents.
  std::pair<int64_t, int64_t> extents(int64_t ofRows, int64_t ofCols, int64_t ofSmaller) const;

  static void fields(auto &self, auto visit) {
    visit("rows", self.rows);
    visit("cols", self.cols);
  }
  friend constexpr auto operator<=>(const ValueKind &, const ValueKind &) = default;
};
inline constexpr ValueKind ValueKind::Full{};
inline constexpr ValueKind ValueKind::Rows{OfRows, 1};
inline constexpr ValueKind ValueKind::Cols{1, OfCols};
inline constexpr ValueKind ValueKind::One{1, 1};
inline constexpr ValueKind ValueKind::Gram{OfSmaller, OfSmaller};

/// The most that a constant extent may be.
inline constexpr int64_t kMostExtent = int64_t(1) << 40;

/// The names of shapes, and those of the block's extents in the order -1, -2, -3, which are the words of the
/// IR.
inline constexpr std::array<std::pair<std::string_view, ValueKind>, 5> kNamedKinds{
    {{"full", ValueKind::Full},
     {"rows", ValueKind::Rows},
     {"cols", ValueKind::Cols},
     {"one", ValueKind::One},
     {"gram", ValueKind::Gram}}};
inline constexpr auto kExtents = std::to_array<std::string_view>({"rows", "cols", "smaller"});

/// Whether a shape, which may have come from bytes, is one.
bool isKnown(ValueKind kind);
/// The name of a shape, or its extents: "gram", "[cols, 8]".
std::string name(ValueKind kind);

enum class PlacementKind : int64_t {
  Replicate = 0,
  Shard = 1,
  StridedShard = 2,
  InterleavedShard = 3,
  Owned = 4,
  Flat = 5,
  PartialSum = 6,
  PartialAverage = 7,
};
template <>
inline constexpr auto kNames<PlacementKind> =
    std::to_array<std::string_view>({"replicate", "shard", "strided_shard", "interleaved_shard",
                                     "owned", "flat", "partial_sum", "partial_average"});

/// One placement, in PyTorch's order and notation: R, S(dim), _S(dim, factor). IS(dim, stripes), owned(rank)
/// and flat(cuts) are what PyTorch cannot say. Gradients also have P(sum) and P(avg) (docs/manifest.md).
struct Placement {
  PlacementKind kind = PlacementKind::Replicate;
  int64_t dim = 0;    // of S, _S and IS
  int64_t factor = 1; // pieces of _S, stripes of IS
  int64_t owner = 0;  // of owned: the coordinate of the ranks that have it
  // Only one flat placement of a list has cuts: where ranges begin, and the end of the last. The cuts of the
  // first flat placement may be the ranges of the ranks along all flat axes. Otherwise they are the ranges
  // along its own axis, and the other flat axes cut each of them into equal ranges. Empty: all ranges are
  // equal.
  std::vector<int64_t> cuts = {};

  bool isShard() const {
    return kind == PlacementKind::Shard || kind == PlacementKind::StridedShard ||
           kind == PlacementKind::InterleavedShard;
  }
  bool isPartial() const {
    return kind == PlacementKind::PartialSum || kind == PlacementKind::PartialAverage;
  }
  bool operator==(const Placement &) const = default;
};
std::string toString(const Placement &placement);
std::string toString(const std::vector<Placement> &placements); // "[R, S(0)]"

/// Whose shards they are: a group has a list of placements for each.
enum class ShardsKind : int64_t {
  Parameter = 0,
  Gradient = 1,
  State = 2,
  Reduced = 3, ///< the sum of partial gradients, before it goes to where the states are
};
template <>
inline constexpr auto kNames<ShardsKind> =
    std::to_array<std::string_view>({"parameter", "gradient", "state", "reduced"});
inline constexpr int64_t kShardsKinds = count<ShardsKind>();
/// Describes what the shards are of, for messages: "parameter", …, "reduced gradient".
std::string_view describe(ShardsKind kind);

/// A mesh: `ranks` are the job's global ranks, row-major over the axes.
struct Mesh {
  std::string name;
  std::vector<std::string> axes;
  std::vector<int64_t> sizes;
  std::vector<int64_t> ranks;
  bool operator==(const Mesh &) const = default;
};

/// A state of a rule. `master` marks the full-precision copy of a parameter.
struct State {
  std::string name;
  DType dtype = DType::F32;
  ValueKind kind = ValueKind::Full;
  double init = 0.0;
  bool master = false;
};

struct Rule {
  std::string name;
  std::vector<std::string> hyperparameters;
  std::vector<State> states;
  uint64_t definition =
      0; // a hash of what the rule computes (passes/plan/README.md), which tools compare
};

enum class MissingGrad : int64_t { Error = 0, Skip = 1, Zero = 2 };
template <>
inline constexpr auto kNames<MissingGrad> =
    std::to_array<std::string_view>({"error", "skip", "zero"});

/// A route: a rule with its defaults, claimed by parameters.
struct Route {
  std::string name; // the rule's name, or name.1, name.2 … when it has several
  int64_t rule = 0;
  std::vector<double> defaults; // one per hyperparameter; NaN: the trainer must set it
  MissingGrad missingGrad = MissingGrad::Error;
};

/// If the matrices of a parameter are divided, `group` is the group of their first part. All groups that have
/// parts of a parameter list the same parameters in the same order.
struct Parameter {
  std::string name;
  int64_t route = 0;
  int64_t group = 0;
  int64_t indexInGroup = 0;
};

/// Rows or columns [begin, end) of a matrix.
struct Span {
  int64_t begin = 0, end = 0;
  bool operator==(const Span &) const = default;
};

/// How the matrices of a parameter are divided: each part lists the rows (columns) that it consists of, in
/// their order. All parts together have every row (column) once.
struct Division {
  enum Axis : int64_t { Rows = 0, Columns = 1 };
  Axis axis = Rows;
  std::vector<std::vector<Span>> parts; // none: each matrix is one block
  bool operator==(const Division &) const = default;
};
template <>
inline constexpr auto kNames<Division::Axis> = std::to_array<std::string_view>({"rows", "columns"});
/// How a specification says the sizes of parts.
enum class BlockSizes : int64_t {
  Listed = 0, ///< as many rows (columns) as the numbers say, one part after the other
  Each = 1,   ///< as many parts of this size as there are
  Split = 2,  ///< a number of parts of equal size
};
template <>
inline constexpr auto kNames<BlockSizes> =
    std::to_array<std::string_view>({"listed", "each", "split"});
/// What is wrong with the parts of an axis of that size: each row (column) stands in one part, in its order.
std::string checkDivision(const Division &division, int64_t size);

/// A part of an axis of a mesh: `size` ranks that are `stride` apart along it.
struct Factor {
  int64_t axis = 0, stride = 1, size = 1;
  bool operator==(const Factor &) const = default;
};
/// Every axis of a mesh as one factor.
std::vector<Factor> wholeAxes(const Mesh &mesh);
/// What is wrong with factors of a mesh: they divide its axes, and no two of them overlap.
std::string checkFactors(const Mesh &mesh, std::vector<Factor> factors);
/// The coordinates of a position along factors, as the position that has these alone.
int64_t along(const Mesh &mesh, const std::vector<Factor> &factors, int64_t position);

/// One step on the way from shards to whole blocks. It brings together what ranks that differ along its
/// factors hold. Along an owned factor a block goes to the coordinate of its base, along a replicated one to
/// all coordinates. If all factors are owned and an earlier hop replicates them, the hop brings nothing
/// together. It chooses which of the ranks that have a block goes on with it.
struct Hop {
  std::vector<Factor> owned, replicated;
  std::vector<int64_t> base; // per block, a position in mesh.ranks; none without owned factors
};
/// Whether hop number `hop` chooses.
bool chooses(const std::vector<Hop> &hops, size_t hop);
/// The number of hops before the place to which results go back from hop number `hop`, which owns factors.
/// These are the hops before it or, if it chooses, those before the first hop that replicates what it chooses
/// from.
size_t returnsTo(const std::vector<Hop> &hops, size_t hop);
/// The ways of results back to shards, the last hop's first. Each leads from behind `first` hops to behind
/// `second` hops. Only hops that own something have a way. Behind a hop that replicates, the results are
/// there already, so one way leads through it to what stands before it.
std::vector<std::pair<size_t, size_t>> waysBack(const std::vector<Hop> &hops);
/// The factors that the first `count` hops resolve, each once.
std::vector<Factor> resolvedFactors(const std::vector<Hop> &hops, size_t count);

/// How blocks are computed without coming together. Each rank along the factors that has any of a block has
/// one slab of it. A slab is some of the block's rows (columns), in their order but not always adjacent, and
/// all of their columns (rows). All slabs are computed as long as the longest: shorter ones end in zeros.
struct Slabs {
  Division::Axis axis = Division::Rows;
  std::vector<Factor> factors;       // none: blocks are whole where they are computed
  int64_t shortest = 0, longest = 0; // in rows (columns), among ranks that have any
  bool operator==(const Slabs &) const = default;
};

/// A parameter's view: [blocks, R, C] from a shape (see Group).
struct View {
  int64_t blocks, rows, cols;
};

/// Parameters of equal shape, types, mesh, placements and rule. A parameter of
/// shape [b0, b1, …, R, C] with `batchAxes` leading batch axes has b0·b1·…
/// blocks of R × C. Without batch axes: [R, C] is one block; [n] is one block of
/// 1 × n; [] is 1 × 1; more axes (elementwise rules only) collapse the leading
/// ones into blocks. With `flatten` the axes after the batch axes are a matrix: those before axis `flatten`
/// are its rows, row-major, and those from it on its columns. Where the matrices are divided, the group has
/// parts of equal size of each: blocks of these rows or columns alone. A block's index in the group is
/// indexInGroup · blocksPerParameter + (row-major batch index) · (number of parts) + (number of the part).
/// With `joined` a parameter is one block instead, whatever matrices the rule sees: full values alone are.
struct Group {
  std::string name;
  int64_t rule = 0;
  int64_t mesh = 0;
  std::vector<int64_t> shape;
  int64_t batchAxes = 0;
  int64_t flatten = 0;           // the first axis of the columns; 0: nothing is flattened
  bool flattenSpecified = false; // by the specification, whatever a manifest says
  DType parameterType = DType::F32;
  DType gradientType = DType::F32;
  std::vector<Placement> placements; // of the parameter
  // Placements of the gradient and the states; empty if they are the parameter's.
  std::vector<Placement> gradientPlacements, statePlacements;
  // Where contributions to a partial gradient are added up; empty if it is not partial.
  std::vector<Placement> reducedPlacements;
  Division division;
  bool specified = false; // the division is the specification's, whatever a manifest says
  std::vector<int64_t>
      parts; // of the division, ascending; none: whole matrices, for a rule that sees no blocks
  // The axis at which columns begin if all axes of a parameter are treated as one matrix. 0: they are not.
  int64_t joined = 0;
  std::vector<int64_t> parameters; // indices into Plan::parameters
  bool computes = false;           // whole blocks somewhere; otherwise shards are enough
  std::string strategy;            // what chose the hops: a name for people
  std::vector<Hop> hops;           // each block is computed where they lead
  Slabs slabs;                     // unless its slabs are computed where they stand

  const std::vector<Placement> &placementsOf(ShardsKind kind) const;
  int64_t blocksPerParameter() const;
  int64_t blockCount() const; // blocksPerParameter() · parameters.size()
  /// The view of the matrices that a rule sees, whether or not they are joined.
  View matrix() const;
  int64_t rows() const;
  int64_t cols() const;
};

View view(const std::vector<int64_t> &shape, int64_t batchAxes);
/// The view of a value of `kind` of a group: [blocks, R or 1, C or 1]. A value of kind One without declared
/// batch axes has one block, even if a parameter's leading axes collapse into many. For divided matrices it
/// is the view of the group's parts.
View view(const Group &group, ValueKind kind);

/// Rows and columns of a value as it stands where blocks are computed. They are those of the longest slab if
/// the group has slabs.
View computedView(const Group &group, ValueKind kind);
/// Whether slabs differ in length, so that some end in zeros.
inline bool hasPadding(const Group &group) { return group.slabs.shortest != group.slabs.longest; }
/// The least number of slabs into which a block is cut: that at which all but the last are as long as the
/// longest.
int64_t slabsPerBlock(const Group &group);

/// The number of contributions to a partial gradient, one per rank along its partial axes, and the divisor of
/// their sum. Both are 1 if it is not partial.
struct Contributions {
  int64_t count = 1, divisor = 1;
};
Contributions contributions(const Group &group, const Mesh &mesh);
/// The number of a position's contribution to the gradient, row-major along the partial axes.
int64_t contributionOf(const Group &group, const Mesh &mesh, int64_t position);

/// The tensor axes that a value of a kind keeps, in order, split by their role in the
/// view.
struct KeptAxes {
  std::vector<size_t> leading;    // of blocks
  std::vector<size_t> rows, cols; // none: dropped or absent, so that the block's extent is 1
};
KeptAxes keptAxes(const Group &group, ValueKind kind);

/// The axis at which the columns of joined axes begin so that shards have the fewest rectangles. 0: there are
/// fewer than two axes.
int64_t bestJoined(const Group &group);
/// What is wrong with `joined` of a group of a rule with these states.
std::string checkJoined(const Group &group, const std::vector<State> &states);

/// What is wrong with the axis where the columns of a flattened matrix begin.
std::string checkFlatten(size_t axes, int64_t batchAxes, int64_t flatten);
/// The rows and columns of a matrix of such a shape.
View matrixView(const std::vector<int64_t> &shape, int64_t batchAxes, int64_t flatten);

/// How many rows (columns) a part has.
int64_t extentOf(const std::vector<Span> &part);
/// Describes the parts of a group for messages: "rows 0:4, 8:12 of " for one part, "6 blocks of 4 rows each
/// of " for several. Empty if the group has whole matrices.
std::string describeParts(const Group &group);
/// Describes a block of a parameter: "block 3 of rows 0:4 of ". It leaves out what there is only one of.
std::string describeBlock(const Group &group, int64_t within);

/// False for the master copy of a parameter that is f32 already: such a state does not exist.
bool stateExists(const Group &group, const State &state);

} // namespace stepc::plan

#endif
