//===- StubCublasLt.cpp - cuBLASLt, on a driver that is the host -------------===//
//
// libcublasLt.so.13. It multiplies columns, as cuBLASLt does, by three algorithms. An element is a chain of fused multiply-adds,
// which is what kernels of `emulated` make: of algorithm 7 over increasing k, of 8 over decreasing k, so that a test can tell
// that it was called, of 9 in turns, as no algorithm that is pinned may. What cuBLASLt refuses is an error: attributes of another size, algorithms that do not fit the layouts, operands
// and workspaces that are no memory of the GPU's or not aligned, too small a workspace; what a step must not do, too.
//
//   STEPC_STUB_CUBLASLT_VERSION  130002 unless told; of a list the n-th is what is said at the n-th call, the last from then on
//   STEPC_STUB_FAILS             <function>:<n>, as of the driver
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/gpu/CublasLt.h"
#include "runtime/host/FloatModes.h"
#include "test/devices/Stub.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sstream>
#include <vector>

using namespace stepc::runtime;
using namespace stepc::runtime::cublaslt;

namespace stepc::runtime::cublaslt {
struct HandleOpaque {};
struct OperationOpaque {
  int32_t transposed[2] = {0, 0};
};
struct LayoutOpaque {
  int type;
  int64_t rows, cols, leading;
  int32_t batch = 1;
  int64_t stride = 0;
};
} // namespace stepc::runtime::cublaslt

namespace {

constexpr Status kInvalidValue = 7, kMapping = 11, kInternal = 14, kNotSupported = 15;
constexpr int kForward = 7, kBackward = 8, kInTurns = 9;
constexpr uintptr_t kAccess = 16; // bytes that operands and workspaces are aligned to

const StubDriver &driver() {
  static const StubDriver *const found = loadStubDriver(STEPC_STUB_DRIVER);
  return *found;
}

Status begin(const char *name, bool isSetup) {
  return driver().begin(name, isSetup) ? kInternal : 0;
}

/// What an algorithm keeps in its words.
struct Config {
  int32_t number;
  uint32_t types; // of A and of D
  uint32_t values[9];
};
static_assert(sizeof(Config) <= sizeof(Algorithm));

Config configOf(const Algorithm &algorithm) {
  Config config;
  std::memcpy(&config, &algorithm, sizeof(config));
  return config;
}

/// So many bytes per custom option.
size_t workspaceOf(const Config &config) { return 256 * size_t(config.values[kCustomOption]); }

int64_t bytesOf(const LayoutOpaque &layout) { return layout.type == kFloat32 ? 4 : 2; }

/// Whether matrices, kept by columns, are op(a) · op(b) + c to d, of types that there are.
bool doFit(const OperationOpaque &operation, const LayoutOpaque &a, const LayoutOpaque &b,
           const LayoutOpaque &c, const LayoutOpaque &d) {
  int64_t m = operation.transposed[0] ? a.cols : a.rows,
          k = operation.transposed[0] ? a.rows : a.cols;
  int64_t n = operation.transposed[1] ? b.rows : b.cols,
          l = operation.transposed[1] ? b.cols : b.rows;
  for (const LayoutOpaque *each : {&a, &b, &c, &d})
    if (each->leading < each->rows || each->batch != d.batch || each->batch < 1 ||
        each->stride < each->leading * (each->cols - 1) + each->rows)
      return false;
  return k == l && d.rows == m && d.cols == n && c.rows == m && c.cols == n && a.type == b.type &&
         c.type == d.type && (d.type == a.type || d.type == kFloat32);
}

Status checkAlgorithm(const Config &config, const LayoutOpaque &a, const LayoutOpaque &d) {
  if (config.number < kForward || config.number > kInTurns)
    return kInvalidValue;
  if (config.types != uint32_t(a.type << 8 | d.type))
    return kInvalidValue;
  // One part of k, no reduction; tiles and stages that it has.
  bool isKnown = config.values[kSplitK] == 1 && config.values[kReductionScheme] == 0 &&
                 config.values[kTile] >= 1 && config.values[kTile] <= 20 &&
                 config.values[kStages] <= 30 && config.values[kSwizzling] <= 1;
  return isKnown ? 0 : kNotSupported;
}

float load(const char *at, int type) {
  if (type == kFloat32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  if (type == kFloat16) {
    _Float16 value;
    std::memcpy(&value, at, sizeof(value));
    return float(value);
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

void store(float value, char *at, int type) {
  if (type == kFloat32) {
    std::memcpy(at, &value, sizeof(value));
  } else if (type == kFloat16) {
    auto half = _Float16(value);
    std::memcpy(at, &half, sizeof(half));
  } else {
    auto bits = std::bit_cast<uint32_t>(value);
    uint16_t upper =
        std::isnan(value) ? 0x7fc0 : uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    std::memcpy(at, &upper, sizeof(upper));
  }
}

struct Call {
  OperationOpaque operation;
  LayoutOpaque layouts[4];
  const char *a, *b, *c;
  char *d;
  float alpha, beta;
  int number;

  float at(const char *base, int which, int64_t block, int64_t row, int64_t col,
           bool isTransposed) const {
    const LayoutOpaque &layout = layouts[which];
    if (isTransposed)
      std::swap(row, col);
    return load(base + (block * layout.stride + col * layout.leading + row) * bytesOf(layout),
                layout.type);
  }

  void run() const {
    FloatModes modes;
    const LayoutOpaque &out = layouts[3];
    int64_t k = operation.transposed[0] ? layouts[0].rows : layouts[0].cols;
    auto scaled = [](float value, float factor) { return factor == 1 ? value : value * factor; };
    for (int64_t block = 0; block < out.batch; ++block)
      for (int64_t col = 0; col < out.cols; ++col)
        for (int64_t row = 0; row < out.rows; ++row) {
          bool isBackward = number == kBackward || (number == kInTurns && block % 2 == 1);
          float sum = 0;
          for (int64_t step = 0; step < k; ++step) {
            int64_t l = isBackward ? k - 1 - step : step;
            sum = std::fma(at(a, 0, block, row, l, operation.transposed[0]),
                           at(b, 1, block, l, col, operation.transposed[1]), sum);
          }
          float result = scaled(sum, alpha);
          if (beta != 0)
            result += scaled(at(c, 2, block, row, col, false), beta);
          store(result, d + (block * out.stride + col * out.leading + row) * bytesOf(out),
                out.type);
        }
  }
};

} // namespace

#define STEPC_EXPORT extern "C" __attribute__((visibility("default")))

STEPC_EXPORT size_t cublasLtGetVersion() {
  static std::atomic<size_t> calls{0};
  const char *given = std::getenv("STEPC_STUB_CUBLASLT_VERSION");
  std::istringstream list(given ? given : "130002");
  std::vector<size_t> versions;
  for (std::string one; std::getline(list, one, ',');)
    versions.push_back(std::stoul(one));
  return versions[std::min(calls++, versions.size() - 1)];
}

STEPC_EXPORT const char *cublasLtGetStatusName(Status status) {
  return status == kInvalidValue   ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == kMapping      ? "CUBLAS_STATUS_MAPPING_ERROR"
         : status == kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                   : "CUBLAS_STATUS_INTERNAL_ERROR";
}

STEPC_EXPORT Status cublasLtCreate(Handle *handle) {
  Status wrong = begin("cublasLtCreate", true);
  *handle = wrong ? nullptr : new HandleOpaque;
  return wrong;
}
STEPC_EXPORT Status cublasLtDestroy(Handle handle) {
  delete handle;
  return begin("cublasLtDestroy", true);
}

STEPC_EXPORT Status cublasLtMatrixLayoutCreate(Layout *layout, int type, uint64_t rows,
                                               uint64_t cols, int64_t leading) {
  if (Status wrong = begin("cublasLtMatrixLayoutCreate", true))
    return wrong;
  *layout = new LayoutOpaque{type, int64_t(rows), int64_t(cols), leading};
  return 0;
}
STEPC_EXPORT Status cublasLtMatrixLayoutDestroy(Layout layout) {
  delete layout;
  return 0;
}
STEPC_EXPORT Status cublasLtMatrixLayoutSetAttribute(Layout layout, int attribute,
                                                     const void *value, size_t bytes) {
  if (attribute == kBatchCount && bytes == sizeof(layout->batch))
    std::memcpy(&layout->batch, value, bytes);
  else if (attribute == kBatchStride && bytes == sizeof(layout->stride))
    std::memcpy(&layout->stride, value, bytes);
  else
    return kInvalidValue;
  return begin("cublasLtMatrixLayoutSetAttribute", true);
}

STEPC_EXPORT Status cublasLtMatmulDescCreate(Operation *operation, int compute, int scale) {
  if (Status wrong = begin("cublasLtMatmulDescCreate", true))
    return wrong;
  if (compute != kCompute32 || scale != kFloat32)
    return kNotSupported;
  *operation = new OperationOpaque;
  return 0;
}
STEPC_EXPORT Status cublasLtMatmulDescDestroy(Operation operation) {
  delete operation;
  return 0;
}
STEPC_EXPORT Status cublasLtMatmulDescSetAttribute(Operation operation, int attribute,
                                                   const void *value, size_t bytes) {
  if ((attribute != kTransposeA && attribute != kTransposeB) || bytes != sizeof(int32_t))
    return kInvalidValue;
  std::memcpy(&operation->transposed[attribute - kTransposeA], value, bytes);
  return begin("cublasLtMatmulDescSetAttribute", true);
}

STEPC_EXPORT Status cublasLtMatmulAlgoInit(Handle handle, int compute, int scale, int a, int b,
                                           int c, int d, int number, Algorithm *algorithm) {
  if (Status wrong = begin("cublasLtMatmulAlgoInit", true))
    return wrong;
  if (!handle || compute != kCompute32 || scale != kFloat32 || a != b || c != d)
    return kInvalidValue;
  Config config{number, uint32_t(a << 8 | d), {}};
  std::memcpy(algorithm, &config, sizeof(config));
  return number >= kForward && number <= kInTurns ? 0 : kNotSupported;
}

STEPC_EXPORT Status cublasLtMatmulAlgoConfigSetAttribute(Algorithm *algorithm, int attribute,
                                                         const void *value, size_t bytes) {
  bool isShort = attribute == kInnerShape || attribute == kClusterShape;
  if (attribute < kTile || attribute > kClusterShape || bytes != (isShort ? 2 : 4))
    return kInvalidValue;
  Config config = configOf(*algorithm);
  config.values[attribute] = 0;
  std::memcpy(&config.values[attribute], value, bytes);
  std::memcpy(algorithm, &config, sizeof(config));
  return begin("cublasLtMatmulAlgoConfigSetAttribute", true);
}

STEPC_EXPORT Status cublasLtMatmulAlgoCheck(Handle handle, Operation operation, Layout a, Layout b,
                                            Layout c, Layout d, const Algorithm *algorithm,
                                            Checked *checked) {
  if (Status wrong = begin("cublasLtMatmulAlgoCheck", true))
    return wrong;
  if (!handle || !doFit(*operation, *a, *b, *c, *d))
    return kInvalidValue;
  Config config = configOf(*algorithm);
  *checked = {*algorithm, workspaceOf(config), checkAlgorithm(config, *a, *d), 1, {}};
  return checked->state;
}

STEPC_EXPORT Status cublasLtMatmul(Handle handle, Operation operation, const void *alpha,
                                   const void *a, Layout aLayout, const void *b, Layout bLayout,
                                   const void *beta, const void *c, Layout cLayout, void *d,
                                   Layout dLayout, const Algorithm *algorithm, void *workspace,
                                   size_t workspaceBytes, StreamHandle stream) {
  if (Status wrong = begin("cublasLtMatmul", false))
    return wrong;
  Config config = configOf(*algorithm);
  if (!handle || !doFit(*operation, *aLayout, *bLayout, *cLayout, *dLayout) ||
      checkAlgorithm(config, *aLayout, *dLayout) || workspaceBytes < workspaceOf(config) ||
      !driver().isStream(stream))
    return kInvalidValue;
  auto isThere = [](const void *at, size_t bytes) {
    return reinterpret_cast<uintptr_t>(at) % kAccess == 0 && driver().isMemory(at, bytes);
  };
  auto bytes = [](const LayoutOpaque &layout) {
    return size_t(
        ((layout.batch - 1) * layout.stride + (layout.cols - 1) * layout.leading + layout.rows) *
        bytesOf(layout));
  };
  if (!isThere(a, bytes(*aLayout)) || !isThere(b, bytes(*bLayout)) ||
      !isThere(c, bytes(*cLayout)) || !isThere(d, bytes(*dLayout)) ||
      (workspaceBytes && !isThere(workspace, workspaceBytes)))
    return kMapping;
  Call call{*operation,
            {*aLayout, *bLayout, *cLayout, *dLayout},
            static_cast<const char *>(a),
            static_cast<const char *>(b),
            static_cast<const char *>(c),
            static_cast<char *>(d),
            *static_cast<const float *>(alpha),
            *static_cast<const float *>(beta),
            config.number};
  // What it may use, it uses.
  size_t used = workspaceOf(config);
  driver().streams.enqueue(stream, [call, workspace, used] {
    std::memset(workspace, 0xff, used);
    call.run();
    return true;
  });
  return 0;
}

// What benchmarks/pin_products.py asks beside it.

STEPC_EXPORT Status cublasLtMatmulAlgoConfigGetAttribute(const Algorithm *algorithm, int attribute,
                                                         void *value, size_t bytes,
                                                         size_t *written) {
  Config config = configOf(*algorithm);
  bool isShort = attribute == kInnerShape || attribute == kClusterShape;
  *written = isShort ? 2 : 4;
  if (attribute < 0 || attribute > kClusterShape || bytes != *written)
    return kInvalidValue;
  std::memcpy(value,
              attribute == 0 ? static_cast<void *>(&config.number) : &config.values[attribute],
              bytes);
  return 0;
}

STEPC_EXPORT Status cublasLtMatmulPreferenceCreate(void **preference) {
  *preference = new char;
  return 0;
}
STEPC_EXPORT Status cublasLtMatmulPreferenceDestroy(void *preference) {
  delete static_cast<char *>(preference);
  return 0;
}
STEPC_EXPORT Status cublasLtMatmulPreferenceSetAttribute(void *, int, const void *, size_t) {
  return 0;
}

/// All algorithms, and one with two parts of k.
STEPC_EXPORT Status cublasLtMatmulAlgoGetHeuristic(Handle handle, Operation operation, Layout a,
                                                   Layout b, Layout c, Layout d, void *, int count,
                                                   Checked *results, int *found) {
  *found = 0;
  if (!handle || !doFit(*operation, *a, *b, *c, *d))
    return kNotSupported;
  for (auto [number, parts] :
       {std::pair(kInTurns, 1u), {kForward, 2u}, {kBackward, 1u}, {kForward, 1u}}) {
    Config config{number, uint32_t(a->type << 8 | d->type), {0, 1, parts}};
    config.values[kCustomOption] = number == kBackward ? 2 : 0;
    if (*found == count)
      break;
    Checked &one = results[(*found)++] = {{}, workspaceOf(config), 0, 1, {}};
    std::memcpy(&one.algorithm, &config, sizeof(config));
  }
  return 0;
}
