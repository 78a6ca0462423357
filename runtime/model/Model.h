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

/// What `optim.reduce` computes of a line of numbers. The values are part of the serialized form.
enum class Reduction : int64_t { Sum = 0, Mean = 1, Rms = 2, Norm = 3, Max = 4 };
template <>
inline constexpr auto kNames<Reduction> =
    std::to_array<std::string_view>({"sum", "mean", "rms", "norm", "max"});

/// The shape of a value that belongs to a block of R × C elements: two extents. Each extent is a constant
/// or is taken from the block.
struct ValueKind {
  /// The numbers that name an extent of the block in the place of a constant. They are part of the
  /// serialized form.
  enum OfBlock : int64_t { OfRows = -1, OfCols = -2, OfSmaller = -3, OfFirstSize = -4 };
  /// Size number i of the rule (Group::sizes), as an extent.
  static constexpr int64_t ofSize(int64_t i) { return OfFirstSize - i; }
  static constexpr int64_t kMostSizes = 8;               ///< of a rule
  static constexpr int64_t kMostSize = int64_t(1) << 20; ///< the largest of them

  constexpr ValueKind() = default;
  constexpr ValueKind(int64_t rows, int64_t cols) : rows(rows), cols(cols) {}

  int64_t rows = OfRows, cols = OfCols; ///< constants above 0, or an OfBlock

  // Names for frequent shapes.
  static const ValueKind Full; ///< R × C
  static const ValueKind Rows; ///< R × 1
  static const ValueKind Cols; ///< 1 × C
  static const ValueKind One;  ///< 1 × 1
  static const ValueKind Gram; ///< n × n, with n the smaller of R and C

  /// Whether a value of this shape may be stored in shards: full, rows, cols or one. Values of all other
  /// shapes exist only on ranks that compute blocks.
  constexpr bool isStored() const {
    return (rows == OfRows || rows == 1) && (cols == OfCols || cols == 1);
  }

  /// Whether it is one value per row, column or block: rows, cols or one. Values of all other shapes have an
  /// element for each row and column of some matrix.
  constexpr bool isLine() const { return isStored() && (rows == 1 || cols == 1); }

  /// The shape of the transposed value beside the transposed block.
  constexpr ValueKind ofTransposed() const {
    auto exchanged = [](int64_t extent) {
      return extent == OfRows ? OfCols : extent == OfCols ? OfRows : extent;
    };
    return {exchanged(cols), exchanged(rows)};
  }

  /// The rows and columns of the value, for a block of `ofRows` × `ofCols`. `ofSmaller` is used for
  /// OfSmaller, and `sizes` are the rule's. A size that it lacks is 0.
  std::pair<int64_t, int64_t> extents(int64_t ofRows, int64_t ofCols, int64_t ofSmaller,
                                      const std::vector<int64_t> &sizes) const;

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

/// The largest constant extent.
inline constexpr int64_t kMostExtent = int64_t(1) << 40;

/// The words of the IR: kNamedKinds for shapes, kExtents for the block's extents -1, -2, … in this order.
inline constexpr std::array<std::pair<std::string_view, ValueKind>, 5> kNamedKinds{
    {{"full", ValueKind::Full},
     {"rows", ValueKind::Rows},
     {"cols", ValueKind::Cols},
     {"one", ValueKind::One},
     {"gram", ValueKind::Gram}}};
inline constexpr auto kExtents =
    std::to_array<std::string_view>({"rows", "cols", "smaller", "size0", "size1", "size2", "size3",
                                     "size4", "size5", "size6", "size7"});
static_assert(kExtents.size() == -ValueKind::OfFirstSize - 1 + ValueKind::kMostSizes);

/// Whether both extents are constants from 1 to kMostExtent or an OfBlock. A shape that was read from bytes
/// may have others.
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

/// One placement, in PyTorch's order and notation: R, S(dim), _S(dim, factor). PyTorch has no counterpart
/// of IS(dim, stripes), owned(rank) and flat(cuts). Gradients also have P(sum) and P(avg)
/// (docs/manifest.md).
struct Placement {
  PlacementKind kind = PlacementKind::Replicate;
  int64_t dim = 0;    // of S, _S and IS
  int64_t factor = 1; // pieces of _S, stripes of IS
  int64_t owner = 0;  // of owned: the coordinate of the ranks that hold the tensor
  // Where each range begins, and where the last one ends. Empty: all ranges are equal. At most one flat
  // placement of a list has cuts. If this is the list's first flat placement, the cuts may be the ranges of
  // all ranks along all flat axes. Otherwise they are ranges along this placement's own axis, and the other
  // flat axes cut each range into equal ones.
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

/// The tensor that shards are cut from. A group has a list of placements for each.
enum class ShardsKind : int64_t {
  Parameter = 0,
  Gradient = 1,
  State = 2,
  Reduced = 3, ///< the sum of contributions to a partial gradient, before it moves to the states
  // Of sums of lines that are cut between ranks (geometry::LineCut).
  LineParts = 4,   ///< what a rank's shards of the states add to each row, column or block
  LineSums = 5,    ///< the sum of each, on one rank
  StateBlocks = 6, ///< states that stay with blocks (Group::blockStates)
};
template <>
inline constexpr auto kNames<ShardsKind> = std::to_array<std::string_view>(
    {"parameter", "gradient", "state", "reduced", "line_parts", "line_sums", "state_blocks"});
inline constexpr int64_t kShardsKinds = count<ShardsKind>();
/// Names the tensor for messages: "parameter", …, "reduced gradient".
std::string_view describe(ShardsKind kind);

/// A mesh: `ranks` are the job's global ranks, row-major over the axes.
struct Mesh {
  std::string name;
  std::vector<std::string> axes;
  std::vector<int64_t> sizes;
  std::vector<int64_t> ranks;
  bool operator==(const Mesh &) const = default;
};

/// Where a state starts: at a number, at the parameter, at the identity matrix, or at random numbers of the
/// normal distribution (runtime/random/Philox.h).
enum class Initial : int64_t { Number = 0, Param = 1, Identity = 2, Normal = 3 };
template <>
inline constexpr auto kNames<Initial> =
    std::to_array<std::string_view>({"number", "param", "identity", "normal"});

/// How messages name it: "the parameter", …
std::string_view describe(Initial start);

/// A state of a rule. `master` marks the full-precision copy of a parameter. `metric` marks a number that
/// steps write for the trainer: it lies in memory of the library, and the trainer neither binds nor saves it.
/// `input` marks what the trainer gives for each step and does not save: it lies as a state of its kind does,
/// and steps only read it. `init` is then the default of what is not given, NaN if it must be given.
struct State {
  std::string name;
  DType dtype = DType::F32;
  ValueKind kind = ValueKind::Full;
  double init = 0.0;
  bool master = false;
  bool metric = false;
  bool input = false;

  /// Whether it lasts from step to step in memory that the trainer binds and saves.
  bool isKept() const { return !metric && !input; }
};

struct Rule {
  std::string name;
  std::vector<std::string> hyperparameters;
  std::vector<State> states;
  uint64_t definition =
      0; // a hash of what the rule computes (passes/plan/README.md), which tools compare
  int64_t tall = -1; // the rule that matrices with more rows than columns take; -1: this one
};

enum class MissingGrad : int64_t { Error = 0, Skip = 1, Zero = 2 };
template <>
inline constexpr auto kNames<MissingGrad> =
    std::to_array<std::string_view>({"error", "skip", "zero"});

/// A rule with default hyperparameters. Parameters are assigned to routes.
struct Route {
  std::string name; // the rule's name, or name.1, name.2 … if the rule has several routes
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

/// How the matrices of a parameter are divided. Each part lists its rows (columns) as ascending ranges.
/// Every row (column) is in exactly one part.
struct Division {
  enum Axis : int64_t { Rows = 0, Columns = 1 };
  Axis axis = Rows;
  std::vector<std::vector<Span>> parts; // empty: each matrix is one block
  bool operator==(const Division &) const = default;
};
template <>
inline constexpr auto kNames<Division::Axis> = std::to_array<std::string_view>({"rows", "columns"});
/// How a specification gives the sizes of parts, in rows (columns).
enum class BlockSizes : int64_t {
  Listed = 0, ///< a list of sizes, one per part, in order
  Each = 1,   ///< one size; the axis is divided into parts of this size
  Split = 2,  ///< a number of parts, all of equal size
};
template <>
inline constexpr auto kNames<BlockSizes> =
    std::to_array<std::string_view>({"listed", "each", "split"});
/// What is wrong with the parts of an axis of `size` rows (columns); empty if nothing is. Each row (column)
/// must be in one part, and the ranges of a part must ascend.
std::string checkDivision(const Division &division, int64_t size);

/// A part of an axis of a mesh: `size` ranks that are `stride` apart along it.
struct Factor {
  int64_t axis = 0, stride = 1, size = 1;
  bool operator==(const Factor &) const = default;
};
/// Every axis of a mesh as one factor.
std::vector<Factor> wholeAxes(const Mesh &mesh);
/// What is wrong with factors of a mesh; empty if nothing is. Factors must divide the mesh's axes, and no
/// two of them may overlap.
std::string checkFactors(const Mesh &mesh, std::vector<Factor> factors);
/// The position that has the coordinates of `position` along `factors`, and coordinate 0 along everything
/// else.
int64_t along(const Mesh &mesh, const std::vector<Factor> &factors, int64_t position);

/// One step on the way from shards to whole blocks. It brings together what ranks that differ along its
/// factors hold. Along an owned factor a block goes to the coordinate of its base, along a replicated one
/// to all coordinates. If all factors are owned and an earlier hop replicates them, the hop brings nothing
/// together: it *chooses* which of the ranks that have a block goes on with the block.
struct Hop {
  std::vector<Factor> owned, replicated;
  std::vector<int64_t> base; // per block, a position in mesh.ranks; empty without owned factors
};
/// Whether hop number `hop` chooses (see Hop).
bool chooses(const std::vector<Hop> &hops, size_t hop);
/// How many hops lead to the place to which the results of hop number `hop` go back. The hop must own
/// factors. Results go back to where the hop started. If the hop chooses, they go back to where the first
/// hop started that replicates the factors.
size_t returnsTo(const std::vector<Hop> &hops, size_t hop);
/// The ways of results back to shards, the last hop's first. Each way leads from the place after `first`
/// hops to the place after `second` hops. Only hops with owned factors need a way. After a hop that only
/// replicates, all ranks have the results, so a way passes over this hop.
std::vector<std::pair<size_t, size_t>> waysBack(const std::vector<Hop> &hops);
/// The factors along which the first `count` hops bring blocks together, each once. A hop that chooses brings
/// nothing together, so it adds none.
std::vector<Factor> resolvedFactors(const std::vector<Hop> &hops, size_t count);

/// How blocks are computed without coming together. Each rank along the factors that holds any element of a
/// block has one slab of the block. A slab is some of the block's rows (columns), in ascending order but
/// not always adjacent, and all of their columns (rows). Shorter slabs are padded with zeros to the length
/// of the longest.
struct Slabs {
  Division::Axis axis = Division::Rows;
  std::vector<Factor> factors;       // empty: blocks are whole where they are computed
  int64_t shortest = 0, longest = 0; // in rows (columns), among ranks that have a slab
  bool operator==(const Slabs &) const = default;
};

/// A parameter, seen as `blocks` matrices of `rows` × `cols` (see Group).
struct View {
  int64_t blocks, rows, cols;
};

/// Parameters of equal shape, types, mesh, placements and rule. A parameter of shape [b0, b1, …, R, C]
/// with `batchAxes` leading batch axes has b0·b1·… blocks of R × C. Without batch axes, [R, C] is one
/// block, [n] is one block of 1 × n, and [] is one block of 1 × 1. Further leading axes also count
/// blocks, for elementwise rules only. With `flatten` the axes after the batch axes form a matrix: the axes
/// before axis `flatten` are its rows, row-major, and the axes from `flatten` on are its columns. If
/// matrices are divided, a group has parts of equal size of each matrix, and each of these parts is a
/// block. A block's index in the group is indexInGroup · blocksPerParameter + (row-major batch index) ·
/// (number of parts) + (number of the part). With `joined` a full value of a parameter is one block,
/// whatever matrices the rule sees.
struct Group {
  std::string name;
  int64_t rule = 0;
  int64_t mesh = 0;
  std::vector<int64_t> shape;
  int64_t batchAxes = 0;
  int64_t flatten = 0;           // the first axis of the columns; 0: nothing is flattened
  bool flattenSpecified = false; // `flatten` is the specification's; a manifest cannot change it
  DType parameterType = DType::F32;
  DType gradientType = DType::F32;
  std::vector<Placement> placements; // of the parameter
  // Placements of the gradient and the states; empty if they equal the parameter's.
  std::vector<Placement> gradientPlacements, statePlacements;
  // By these, contributions to a partial gradient are added up; empty if the gradient is not partial.
  std::vector<Placement> reducedPlacements;
  Division division;
  bool specified = false; // the division is the specification's; a manifest cannot change it
  std::vector<int64_t>
      parts; // numbers of parts of `division`, ascending; empty: the blocks are whole matrices
  // The axis at which columns begin if all axes of a parameter are joined to one matrix. 0: not joined.
  int64_t joined = 0;
  std::vector<int64_t> parameters; // indices into Plan::parameters
  bool computes = false;           // the rule needs blocks; false: it works on shards alone
  std::string strategy;            // the name of what chose the hops, for people
  std::vector<Hop> hops;           // each block is computed where the hops lead
  Slabs slabs;                     // with factors: slabs are computed, and no whole blocks
  // Numbers of the rule's states, ascending, that have no placements. They stay with blocks: each rank has
  // these states of the blocks that it computes, whole. Only for rules that compute whole blocks.
  std::vector<int64_t> blockStates;
  // The sizes that the rule computes from those of a block, by their numbers (ValueKind::ofSize).
  std::vector<int64_t> sizes;

  /// Whether state number `state` of the rule stays with blocks.
  bool staysWithBlocks(int64_t state) const;
  /// By which placements a state of the rule lies: its own or, if it stays with blocks, none.
  ShardsKind shardsOfState(int64_t state) const {
    return staysWithBlocks(state) ? ShardsKind::StateBlocks : ShardsKind::State;
  }
  const std::vector<Placement> &placementsOf(ShardsKind kind) const;
  int64_t blocksPerParameter() const;
  int64_t blockCount() const; // blocksPerParameter() · parameters.size()
  /// The view of the matrices that a rule sees, whether or not they are joined.
  View matrix() const;
  int64_t rows() const;
  int64_t cols() const;
  /// The elements that a rule counts: of a matrix if batch axes are declared or matrices are divided,
  /// otherwise of the whole parameter.
  double numel() const;
};

View view(const std::vector<int64_t> &shape, int64_t batchAxes);
/// The view of a value of `kind` of a group: [blocks, R or 1, C or 1]. A value of kind One without declared
/// batch axes has one block, even if leading axes of the parameter count as many blocks. If matrices are
/// divided, the blocks are the group's parts.
View view(const Group &group, ValueKind kind);

/// The name of a kind of the group's values: as above, with numbers in the place of the rule's sizes.
std::string name(const Group &group, ValueKind kind);

/// The view of a value on the ranks that compute its blocks. If the group has slabs, rows and columns are
/// those of the longest slab.
View computedView(const Group &group, ValueKind kind);
/// Whether slabs differ in length, so that some end in zeros.
inline bool hasPadding(const Group &group) { return group.slabs.shortest != group.slabs.longest; }
/// The least number of slabs that a block can have. In that case all but the last are as long as the
/// longest.
int64_t slabsPerBlock(const Group &group);

/// The number of contributions to a partial gradient, one per rank along its partial axes, and the divisor of
/// their sum. Both are 1 if the gradient is not partial.
struct Contributions {
  int64_t count = 1, divisor = 1;
};
Contributions contributions(const Group &group, const Mesh &mesh);
/// The number of a position's contribution to the gradient, row-major along the partial axes.
int64_t contributionOf(const Group &group, const Mesh &mesh, int64_t position);

/// The tensor axes that a value of a kind keeps, in ascending order, by what they count: blocks, rows or
/// columns.
struct KeptAxes {
  std::vector<size_t> leading;    // count blocks
  std::vector<size_t> rows, cols; // empty: dropped or absent; the block's extent is 1
};
KeptAxes keptAxes(const Group &group, ValueKind kind);

/// The axis at which columns should begin if all axes are joined, so that shards have the fewest
/// rectangles. Returns 0 if there are fewer than two axes.
int64_t bestJoined(const Group &group);
/// What is wrong with Group::joined, for a rule with these states; empty if nothing is.
std::string checkJoined(const Group &group, const std::vector<State> &states);

/// What is wrong with `flatten`, the axis where the columns of a flattened matrix begin; empty if nothing
/// is.
std::string checkFlatten(size_t axes, int64_t batchAxes, int64_t flatten);
/// The view of a parameter of this shape. See Group for `batchAxes` and `flatten`.
View matrixView(const std::vector<int64_t> &shape, int64_t batchAxes, int64_t flatten);

/// How the elements of a parameter are counted: matrix by matrix, in each of them part by part as the
/// division lists them, and in each block row by row. Elements of a value of other sizes are counted in the
/// same way.
class ElementOrder {
public:
  explicit ElementOrder(const Group &group, ValueKind kind = ValueKind::Full);
  /// How many elements of its parameter come before block `within` of the group.
  int64_t before(int64_t within) const {
    auto parts = static_cast<int64_t>(begins.size());
    return within / parts * matrix + begins[static_cast<size_t>(within % parts)];
  }

private:
  int64_t matrix;              // elements of a matrix
  std::vector<int64_t> begins; // of the group's parts in their matrix; 0 for whole matrices
};

/// How many rows (columns) a part has.
int64_t extentOf(const std::vector<Span> &part);
/// Whether all parts have as many rows (columns).
bool haveEqualParts(const Division &division);
/// Describes the parts of a group for messages: "rows 0:4, 8:12 of " for one part, "6 blocks of 4 rows each
/// of " for several. Empty if the group has whole matrices.
std::string describeParts(const Group &group);
/// Describes a block of a parameter: "block 3 of rows 0:4 of ". Omits the number if the parameter has one
/// matrix, and the part if the blocks are whole matrices.
std::string describeBlock(const Group &group, int64_t within);

/// False for the master copy of a parameter that is f32 already: such a state does not exist.
bool stateExists(const Group &group, const State &state);

} // namespace stepc::plan

#endif
