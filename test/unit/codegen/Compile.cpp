//===- Compile.cpp - Text of level 4 to a loaded library -------------------===//

#include "test/unit/codegen/Compile.h"

#include "dialects/comm/Comm.h"
#include "passes/codegen/Codegen.h"
#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"

#include "gtest/gtest.h"

#include <dlfcn.h>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

using namespace mlir;

namespace stepc::test {
namespace {

/// Holds the libraries of one run of the tests, and takes them away with it.
const std::string &folder() {
  struct Folder {
    llvm::SmallString<128> path;
    std::string text;
    Folder() {
      llvm::sys::fs::createUniqueDirectory("stepc-codegen-tests", path);
      text = std::string(path);
    }
    ~Folder() { llvm::sys::fs::remove_directories(path); }
  };
  static const Folder made;
  return made.text;
}

} // namespace

std::string temporaryFile(const std::string &name) { return folder() + "/" + name; }

std::string input(const std::string &name) {
  std::ifstream file(std::string(STEPC_TEST_INPUTS) + "/" + name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

namespace {

/// Every text, context and module of one compilation.
class Compilation {
public:
  explicit Compilation(const CompileRequest &request) : request(request) {
    DialectRegistry registry;
    registry
        .insert<optim::OptimDialect, comm::CommDialect, arith::ArithDialect, math::MathDialect,
                tensor::TensorDialect, memref::MemRefDialect, func::FuncDialect, scf::SCFDialect,
                vector::VectorDialect, cf::ControlFlowDialect, LLVM::LLVMDialect>();
    if (request.registerMore)
      request.registerMore(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      result.error += diagnostic.str() + "\n";
      for (Diagnostic &note : diagnostic.getNotes())
        result.error += "note: " + note.str() + "\n";
    });
  }

  Compiled run() {
    auto module = parse(request.text);
    if (!module)
      return std::move(result);
    auto toExec = [&](OpPassManager &m) { kernels::buildExecPipeline(m, {request.target}); };
    if (!lower(module, toExec, request.restart == Restart::Kernels))
      return std::move(result);
    FailureOr<std::unique_ptr<kernels::Target>> target = kernels::targetOfModule(*module);
    if (failed(target))
      return std::move(result);
    auto toLlvm = [&](OpPassManager &m) {
      kernels::buildLlvmPipeline(m, **target, /*isProven=*/false);
    };
    if (!lower(module, toLlvm, request.restart == Restart::Llvm))
      return std::move(result);
    codegen::CodegenOptions options;
    options.sanitizer = request.sanitizer;
    options.isQuick = request.isQuick;
    FailureOr<std::vector<char>> object = codegen::emitObject(*module, options);
    FailureOr<plan::Plan> plan = kernels::embeddedPlan(*module);
    if (failed(object) || failed(plan))
      return std::move(result);
    result.json = codegen::planToJson(*plan);
    result.entry = kernels::entryName(plan->name);
    name = plan->name;
    result.programs.push_back({std::move(*plan), std::move(*object)});
    result.header = codegen::makeHeader(result.programs);
    return std::move(result);
  }

  std::string name;

private:
  OwningOpRef<ModuleOp> parse(const std::string &text) {
    return parseSourceString<ModuleOp>(text, &context);
  }

  bool lower(OwningOpRef<ModuleOp> &module, llvm::function_ref<void(OpPassManager &)> build,
             bool restart) {
    PassManager manager(&context);
    build(manager);
    if (failed(manager.run(*module)))
      return false;
    if (restart) {
      std::string text;
      llvm::raw_string_ostream os(text);
      module->print(os);
      module = parse(text);
    }
    return bool(module);
  }

  const CompileRequest &request;
  MLIRContext context;
  Compiled result;
};

} // namespace

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(generator);
  return values;
}

Compiled compile(const CompileRequest &request) { return Compilation(request).run(); }

Compiled link(const CompileRequest &request) {
  Compilation compilation(request);
  Compiled result = compilation.run();
  if (!result.error.empty())
    return result;
  auto fail = [&](std::string message) {
    result.error = std::move(message);
    return result;
  };
  llvm::Expected<std::vector<std::string>> archives =
      codegen::findRuntimeArchives(STEPC_TEST_BIN "/test", request.sanitizer);
  if (!archives)
    return fail(llvm::toString(archives.takeError()));
  llvm::SmallString<128> path;
  llvm::sys::fs::createUniquePath(
      llvm::Twine(folder()) + "/lib" + compilation.name + "-%%%%%%%%.so", path, false);
  result.path = std::string(path);
  if (llvm::Error error =
          codegen::linkLibrary(result.programs, *archives, result.path, request.sanitizer))
    return fail(llvm::toString(std::move(error)));
  return result;
}

Compiled load(const CompileRequest &request) {
  Compiled result = link(request);
  if (!result.error.empty())
    return result;
  auto fail = [&](std::string message) {
    result.error = std::move(message);
    return result;
  };
  void *handle = dlopen(result.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return fail(dlerror());
  auto entry = reinterpret_cast<const stepc_library *(*)()>(dlsym(handle, result.entry.c_str()));
  if (!entry)
    return fail("no " + result.entry);
  result.library = entry();
  return result;
}

static int64_t byteSize(const std::string &dtype) {
  return dtype == "f32" ? 4 : dtype == "f64" ? 8 : 2;
}

static int64_t elements(const int64_t *shape, int32_t axes) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < axes; ++axis)
    count *= shape[axis];
  return count;
}

void Rank::allocate() {
  int64_t count = library->parameter_count();
  parameters.resize(count);
  gradients.resize(count);
  states.resize(count);
  steps.assign(count, 0);
  for (int64_t p = 0; p < count; ++p) {
    auto info = sized<stepc_parameter_info>();
    ASSERT_EQ(library->parameter_info(instance, p, &info), 0);
    if (!info.member)
      continue;
    parameters[p].resize(elements(info.local_shape, info.axes) * byteSize(info.dtype));
    gradients[p].resize(elements(info.gradient_local_shape, info.axes) *
                        byteSize(info.gradient_dtype));
    auto data = [](std::vector<char> &bytes) { return bytes.empty() ? nullptr : bytes.data(); };
    ASSERT_EQ(library->bind_parameter(instance, p, data(parameters[p]), parameters[p].size()), 0)
        << library->last_error(instance);
    ASSERT_EQ(library->bind_gradient(instance, p, data(gradients[p]), gradients[p].size()), 0)
        << library->last_error(instance);
    states[p].resize(info.states);
    for (int32_t s = 0; s < info.states; ++s) {
      auto state = sized<stepc_state_info>();
      ASSERT_EQ(library->state_info(instance, p, s, &state), 0);
      states[p][s].resize(elements(state.local_shape, state.axes) * byteSize(state.dtype));
      ASSERT_EQ(library->bind_state(instance, p, s, data(states[p][s]), states[p][s].size()), 0)
          << library->last_error(instance);
    }
  }
  ASSERT_EQ(library->bind_steps(instance, steps.data(), STEPC_MEMORY_HOST), 0);
}

void Rank::step() { ASSERT_EQ(library->step(instance), 0) << library->last_error(instance); }

void runWorld(const stepc_library *library, const std::function<void(Rank &, int)> &body,
              int threads, const std::function<void(stepc_transport &)> &change) {
  int32_t size = library->world_size();
  std::vector<stepc_transport> transports(size, sized<stepc_transport>());
  ASSERT_EQ(library->in_process_world(size, transports.data()), 0);
  for (stepc_transport &transport : transports)
    if (change)
      change(transport);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back([&, rank] {
      auto options = sized<stepc_options>();
      options.abi_version = STEPC_ABI_VERSION;
      options.transport = &transports[rank];
      options.threads = threads;
      options.timeout_seconds = 60;
      char error[1024] = "";
      Rank self{library, nullptr, {}, {}, {}, {}};
      ASSERT_EQ(library->create(&options, &self.instance, error, sizeof(error)), 0) << error;
      self.allocate();
      if (!testing::Test::HasFatalFailure())
        body(self, rank);
      library->destroy(self.instance);
    });
  for (std::thread &rank : ranks)
    rank.join();
}

} // namespace stepc::test
