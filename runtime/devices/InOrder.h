//===- InOrder.h - Devices that are done when they return --------*- C++ -*-===//
//
// The walker's thread calls every function, and each function returns when its work is done. Therefore
// streams are in order without events. The threads of parallel_for share the items of a kernel. These devices
// differ only in how they run items.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_DEVICES_INORDER_H
#define STEPC_RUNTIME_DEVICES_INORDER_H

#include "runtime/devices/Device.h"
#include "runtime/host/FloatModes.h"

#include <algorithm>
#include <cstring>

namespace stepc::runtime {

/// Runs items [first, last) of a launch.
using RunItems = void (*)(const DeviceContext &, const Launch &, int64_t first, int64_t last);

template <RunItems runItems> class InOrder {
public:
  /// `open` and `checkLaunch` are the functions of the table (Device.h).
  static constexpr stepc_device_table
  table(const char *name, std::string (*open)(DeviceContext &, const stepc_options &),
        std::string (*checkLaunch)(DeviceContext &, const Launch &) = nullptr) {
    return {
        name,
        STEPC_DEVICE_CPU,
        open,
        [](DeviceContext &, Memory &memory, int64_t bytes, const stepc_options &options) {
          return memory.allocate(bytes, options);
        },
        [](DeviceContext &, Memory &memory, int64_t bytes) { return memory.mapZeros(bytes); },
        lendOwn,
        [](DeviceContext &) {},
        launchKernel,
        compute,
        copyRows,
        moveBytes,
        [](DeviceContext &, Stream, void (*function)(void *), void *argument) {
          function(argument);
        },
        [](DeviceContext &, Stream, int64_t) {},
        [](DeviceContext &, Stream, int64_t) {},
        [](DeviceContext &) {},
        [](DeviceContext &) { return true; },
        [](DeviceContext &) {},
        [](DeviceContext &) noexcept {},
        nullptr, // stream
        nullptr, // marks
        nullptr, // mark
        nullptr, // report
        nullptr, // checkPointer
        checkLaunch,
        nullptr, // graphs
    };
  }

private:
  struct KernelTask {
    const Launch &launch;
    const DeviceContext &context;
  };

  /// Sets the floating-point modes, because the trainer's threads may have others. Our own threads have them
  /// already.
  static void runKernel(void *arguments, int64_t first, int64_t last) {
    FloatModes modes;
    const auto &[launch, context] = *static_cast<KernelTask *>(arguments);
    runItems(context, launch, first, last);
  }

  /// Runs a kernel, but leaves out the items of parameters that this step skips.
  static void runActive(void *arguments, int64_t first, int64_t last) {
    FloatModes modes;
    const auto &[launch, context] = *static_cast<KernelTask *>(arguments);
    auto active = [&](int64_t item) {
      return context.records[launch.parameters[item * launch.stride]].active != 0;
    };
    while (first < last) {
      int64_t end = first;
      while (end < last && active(end))
        ++end;
      if (end > first)
        runItems(context, launch, first, end);
      first = end + 1;
    }
  }

  static int64_t grainFor(int64_t rows, int64_t elements, int64_t threads) {
    // A piece should be a few microseconds of work, because long pieces keep the chip's prefetching going.
    // There should be enough pieces that no thread waits long for the last one.
    constexpr int64_t kPieceElements = 8192, kPiecesPerThread = 64;
    int64_t piece = std::max(kPieceElements, elements / (kPiecesPerThread * threads));
    return std::max<int64_t>(1, rows * piece / std::max<int64_t>(1, elements));
  }

  static int64_t runLaunch(DeviceContext &context, const Launch &launch) {
    KernelTask task{launch, context};
    int64_t grain = launch.grain
                        ? launch.grain
                        : grainFor(launch.items, launch.elements, context.parallel.threads());
    return context.parallel.run(launch.parameters && context.someInactive ? runActive : runKernel,
                                &task, launch.items, grain);
  }

  static void launchKernel(DeviceContext &context, Stream, const Launch &launch) {
    ++context.executed.launches;
    context.executed.chunks += runLaunch(context, launch);
  }

  static void compute(DeviceContext &context, Stream, const BatchWork &work) {
    ++context.executed.launches;
    bool all = true;
    for (const Launch &kernel : work.kernels)
      all &= runLaunch(context, kernel) == kernel.items;
    context.executed.chunks += all ? work.blocks : 0;
  }

  struct CopyTask {
    const RowCopy &copy;
    const DeviceContext &context;
  };

  static void runCopy(void *arguments, int64_t first, int64_t last) {
    const auto &[copy, context] = *static_cast<CopyTask *>(arguments);
    for (int64_t i = first; i < last; ++i) {
      const plan::CopyRow &row = copy.rows[i];
      // The gradient of a skipped parameter may be null.
      if ((copy.fromShards || copy.toShards) && !context.records[row.parameter].active)
        continue;
      const char *from =
          copy.fromShards ? static_cast<char *>(copy.fromShards[row.parameter]) : copy.from;
      char *to = copy.toShards ? static_cast<char *>(copy.toShards[row.parameter]) : copy.to;
      from += row.source * copy.elementBytes;
      to += row.target * copy.elementBytes;
      for (int64_t r = 0; r < row.rows; ++r)
        std::memcpy(to + r * row.targetStride * copy.elementBytes,
                    from + r * row.sourceStride * copy.elementBytes, row.cols * copy.elementBytes);
    }
  }

  static void copyRows(DeviceContext &context, Stream, const RowCopy &copy) {
    ++context.executed.launches;
    CopyTask task{copy, context};
    context.executed.chunks +=
        context.parallel.run(runCopy, &task, copy.count,
                             grainFor(copy.count, copy.elements, context.parallel.threads()));
  }

  /// Bytes in pieces, so that all threads copy.
  struct MoveTask {
    const char *from;
    char *to;
    int64_t bytes;
    static constexpr int64_t kPiece = 1 << 18;
    static void run(void *arguments, int64_t first, int64_t last) {
      const MoveTask &move = *static_cast<MoveTask *>(arguments);
      int64_t begin = first * kPiece, end = std::min(last * kPiece, move.bytes);
      std::memcpy(move.to + begin, move.from + begin, end - begin);
    }
  };

  static void moveBytes(DeviceContext &context, Stream, const char *from, char *to, int64_t bytes) {
    MoveTask move{from, to, bytes};
    context.parallel.run(MoveTask::run, &move, (bytes + MoveTask::kPiece - 1) / MoveTask::kPiece,
                         1);
  }

  static std::string lendOwn(DeviceContext &, std::vector<HostList> &lists) {
    for (HostList &list : lists)
      list.address = list.data;
    return {};
  }
};

} // namespace stepc::runtime

#endif
