//===- Assemble.cpp - PTX to machine code, chip by chip ----------------------===//
//
// ptxas is a program of NVIDIA and no library, so the compiler runs it as a process. The compiler may have
// been built on another machine, so it looks for ptxas when it needs it. It looks in STEPC_CUDA_BIN,
// otherwise on the path, in CUDA's folders, and among pip's packages beside the compiler's own.
//
//===----------------------------------------------------------------------===//

#include "dialects/comm/Comm.h"
#include "frontends/text/Files.h"
#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/ProgramImages.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_ASSEMBLEGPU
#include "passes/kernels/Passes.h.inc"

using namespace mlir;

namespace {

/// An older ptxas contracts packed products and sums.
constexpr int64_t kLeastMajor = 13, kLeastMinor = 1;
constexpr StringLiteral kInstall =
    " (`pip install --no-deps nvidia-cuda-nvcc==13.1.115` has it; STEPC_CUDA_BIN names its folder)";

using Folder = llvm::SmallString<128>;

/// Runs a program. Returns what it printed, or an error that includes it.
llvm::Expected<std::string> run(StringRef program, ArrayRef<StringRef> arguments) {
  llvm::Expected<std::string> log = text::makeTemporaryFile("log");
  if (!log)
    return log.takeError();
  llvm::scope_exit remove([&] { llvm::sys::fs::remove(*log); });
  SmallVector<StringRef> all = {program};
  llvm::append_range(all, arguments);
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(*log), StringRef(*log)};
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(program, all, std::nullopt, redirects, 0, 0, &problem);
  auto text = llvm::MemoryBuffer::getFile(*log);
  std::string printed = text ? (*text)->getBuffer().str() : std::string();
  if (status == 0)
    return printed;
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 program + " failed: " + problem + printed);
}

/// The folders named nvidia in which pip has its packages: beside stepc's package, and in the source tree's
/// environment.
SmallVector<std::string> pipFolders() {
  SmallVector<std::string> folders;
  std::string program = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  Folder root = llvm::sys::path::parent_path(llvm::sys::path::parent_path(program));
  llvm::sys::path::remove_filename(root); // of <root>/stepc/bin/stepc or <root>/build/bin/stepc
  auto add = [&](StringRef packages) { folders.push_back((packages + "/nvidia").str()); };
  add(root);
  std::error_code wrong;
  for (llvm::sys::fs::directory_iterator at(root + "/.venv/lib", wrong), end; !wrong && at != end;
       at.increment(wrong))
    add(at->path() + "/site-packages");
  return folders;
}

/// The paths of all ptxas that are found, the first choice first.
SmallVector<std::string> ptxasCandidates() {
  SmallVector<std::string> found;
  auto add = [&](const Twine &folder) {
    std::string path = (folder + "/ptxas").str();
    if (llvm::sys::fs::can_execute(path))
      found.push_back(path);
  };
  if (auto onPath = llvm::sys::findProgramByName("ptxas"))
    found.push_back(*onPath);
  for (const std::optional<std::string> &cuda :
       {llvm::sys::Process::GetEnv("CUDA_HOME"), llvm::sys::Process::GetEnv("CUDA_PATH")})
    if (cuda)
      add(*cuda + "/bin");
  for (const std::string &folder : pipFolders()) {
    std::error_code wrong;
    SmallVector<std::string> packages; // as nvidia/cu13
    for (llvm::sys::fs::directory_iterator at(folder, wrong), end; !wrong && at != end;
         at.increment(wrong))
      packages.push_back(at->path());
    llvm::sort(packages);
    for (const std::string &package : packages)
      add(package + "/bin");
  }
  add("/usr/local/cuda/bin");
  return found;
}

llvm::Error ptxasError(const Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text + kInstall);
}

/// Whether a ptxas is new enough.
llvm::Error checkRelease(StringRef ptxas) {
  llvm::Expected<std::string> printed = run(ptxas, {"--version"});
  if (!printed)
    return printed.takeError();
  SmallVector<StringRef> parts;
  int64_t major = 0, minor = 0;
  if (!llvm::Regex("release ([0-9]+)\\.([0-9]+)").match(*printed, &parts) ||
      parts[1].getAsInteger(10, major) || parts[2].getAsInteger(10, minor))
    return ptxasError("expected " + ptxas + " to tell its release, found '" + *printed + "'");
  if (std::pair(major, minor) < std::pair(kLeastMajor, kLeastMinor))
    return ptxasError("expected ptxas of CUDA 13.1 or later, found " + Twine(major) + "." +
                      Twine(minor) + " as " + ptxas);
  return llvm::Error::success();
}

/// Returns the first ptxas that is new enough. If none is, returns the error about the first choice.
llvm::Expected<std::string> findPtxas() {
  SmallVector<std::string> candidates;
  if (std::string given = llvm::sys::Process::GetEnv("STEPC_CUDA_BIN").value_or("");
      !given.empty()) {
    candidates.push_back(given + "/ptxas");
    if (!llvm::sys::fs::can_execute(candidates[0]))
      return ptxasError("expected ptxas in STEPC_CUDA_BIN, found no program " + candidates[0]);
  } else {
    candidates = ptxasCandidates();
  }
  if (candidates.empty())
    return ptxasError(
        "expected NVIDIA's assembler ptxas in the PATH, in CUDA_HOME or CUDA_PATH, among pip's "
        "packages or in /usr/local/cuda, found none");
  std::optional<llvm::Error> problem;
  for (const std::string &candidate : candidates) {
    llvm::Error wrong = checkRelease(candidate);
    if (!wrong) {
      if (problem)
        llvm::consumeError(std::move(*problem));
      return candidate;
    }
    if (problem)
      llvm::consumeError(std::move(wrong));
    else
      problem = std::move(wrong);
  }
  return std::move(*problem);
}

llvm::Expected<std::string> assemble(StringRef ptxas, StringRef ptx, StringRef chip) {
  std::string source, code;
  llvm::scope_exit remove([&] {
    llvm::sys::fs::remove(source);
    llvm::sys::fs::remove(code);
  });
  for (auto [path, kind] : {std::pair(&source, "ptx"), std::pair(&code, "cubin")}) {
    llvm::Expected<std::string> made = text::makeTemporaryFile(kind);
    if (!made)
      return made.takeError();
    *path = *made;
  }
  if (llvm::Error wrong = text::writeTemporary(source, ptx))
    return std::move(wrong);
  std::string arch = ("-arch=" + chip).str();
  SmallVector<StringRef> arguments = {arch, "-O3", source, "-o", code};
  // The instructions do not depend on the number of threads. A cubin records the number, so it is fixed and
  // not the machine's. Short PTX takes longer with more than one thread.
  constexpr size_t kMuch = 1 << 19;
  if (ptx.size() > kMuch)
    arguments.push_back("-split-compile=4");
  llvm::Expected<std::string> printed = run(ptxas, arguments);
  if (!printed) {
    // Machine code is not larger than its PTX. If there is no room for that, the folder is to blame and not
    // ptxas.
    StringRef folder = llvm::sys::path::parent_path(code);
    if (std::error_code full = text::checkRoom(folder, 2 * ptx.size())) {
      llvm::consumeError(printed.takeError());
      return text::fileError(folder,
                             "cannot write temporary files (TMPDIR): " + text::reasonOf(full));
    }
    return printed;
  }
  auto bytes = llvm::MemoryBuffer::getFile(code);
  if (!bytes)
    return llvm::createStringError(bytes.getError(), "expected machine code from ptxas");
  return (*bytes)->getBuffer().str();
}

/// The image of code that a driver loads. Its constants are named by `symbol` after "stepc_image_" and
/// "stepc_chip_".
ProgramImage imageOf(const std::string &symbol, const GpuChip &chip, stepc_image_kind kind,
                     std::string code) {
  return {"stepc_image_" + symbol, "stepc_chip_" + symbol, chip.name, chip.major, chip.minor, kind,
          std::move(code)};
}

/// Emits an error. A folder that cannot be written is the user's fault. A tool that is missing or too old is
/// not stepc's fault.
void refuse(ModuleOp module, llvm::Error error, bool isTool) {
  bool isPlace = error.isA<llvm::FileError>();
  InFlightDiagnostic diagnostic = module.emitError(llvm::toString(std::move(error)));
  if (isPlace)
    comm::blameInput(std::move(diagnostic));
  else if (isTool)
    diagnostic.getUnderlyingDiagnostic()->getMetadata().emplace_back(StringRef(kToolErrorMark));
}

struct AssembleGpu : impl::AssembleGpuBase<AssembleGpu> {
  using AssembleGpuBase::AssembleGpuBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto binaries = llvm::to_vector(module.getOps<gpu::BinaryOp>());
    if (binaries.size() != 1 || binaries[0].getObjects().size() != 1) {
      module.emitError("expected one gpu.binary of one object, found ") << binaries.size();
      return signalPassFailure();
    }
    auto object = cast<gpu::ObjectAttr>(binaries[0].getObjects()[0]);
    llvm::Expected<std::string> ptxas = findPtxas();
    if (!ptxas) {
      refuse(module, ptxas.takeError(), /*isTool=*/true);
      return signalPassFailure();
    }
    llvm::Expected<GpuChip> known = gpuChip(chip);
    llvm::Expected<std::string> code =
        known ? assemble(*ptxas, object.getObject().getValue(), chip) : known.takeError();
    if (!code) {
      refuse(module, code.takeError(), /*isTool=*/false);
      return signalPassFailure();
    }
    stepc_image_kind kind = known->isExact ? STEPC_IMAGE_OF_ONE : STEPC_IMAGE_OF_GENERATION;
    SmallVector<ProgramImage> images = {imageOf(chip, *known, kind, std::move(*code))};
    if (ptx) {
      auto target = cast<NVVM::NVVMTargetAttr>(object.getTarget());
      llvm::Expected<GpuChip> least = gpuChip(target.getChip());
      if (!least) {
        module.emitError(llvm::toString(least.takeError()));
        return signalPassFailure();
      }
      // The driver expects text that ends with a zero byte.
      StringRef text = object.getObject().getValue();
      images.push_back(
          imageOf("ptx", *least, STEPC_IMAGE_PTX, text.rtrim('\0').str() + std::string(1, '\0')));
    }
    binaries[0].erase();
    if (auto named = module.lookupSymbol<LLVM::GlobalOp>(kImages))
      named.erase();
    KernelBuilder b(module.getContext(), module.getLoc());
    b.setInsertionPointToEnd(module.getBody());
    embedImages(b, images);
  }
};

} // namespace
} // namespace stepc::kernels
