//===- Passes.td - From the scheduled program to the LLVM dialect -*- tablegen -*-===//
#ifndef STEPC_PASSES_KERNELS_PASSES_TD
#define STEPC_PASSES_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerToExec : Pass<"comm-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "Makes each operation of a scheduled program a command, with its kernel";
  let description = [{
    Every stage becomes a function of what one chunk sees (a row of scalars, and a view of each operand)
    with one `linalg.generic`. Every scalar stage becomes a function of f64 numbers of one parameter. There
    is one function per distinct computation, and nothing in it depends on a target. Products and functions
    of blocks become commands that say what they compute. The step becomes an `exec.program`: a command per
    operation, in the same order. A command names tables by what they hold, and memory by its offset in the
    workspace. Groups and segments stay as symbols.

    The target gives the order in which products accumulate, and the scratch that products and functions of
    blocks need. All these commands share one scratch after the arena, because no two of them run at a time.
    Its size, `scratch` of the program, is the largest need of any command on any rank. It is an error if a
    command needs more per block than the bound of earlier levels (passes/plan/StepScratch.h). If the target
    has kernels on warpgroups, a missed remark says why a product has another kernel.

    Before:
    ```mlir
    func.func @step() attributes {comm.arena_bytes = 64 : i64} {
      %hyperparameters = comm.hyperparameters
      %steps = comm.steps
      %active = comm.active
      %t = comm.buffer offset 0 bytes 4 : memref<1x1xf32, #comm.place<@g0, scalars>>
      comm.scalars of %hyperparameters, %steps active %active outs(%t : ...) { ... }
      %p = comm.shards parameter @g0 : !comm.shards<@g0, f32>
      comm.stage @g0 over shards active %active ins(%p, ...) writes(%p) scalars(%t) { ... }
      comm.advance_steps %steps active %active
      return
    }
    ```
    After:
    ```mlir
    func.func private @Sgd_scalars(%lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64) -> f32 { ... }
    func.func private @Sgd_elementwise_f32(%scalars: memref<1xf32>, %param: memref<?x?xf32, strided<[?, 1]>>,
        %grad: memref<?x?xf32, strided<[?, 1]>>) {
      %c0 = arith.constant 0 : index
      %lr = memref.load %scalars[%c0] : memref<1xf32>
      linalg.generic { ... } ins(%param, %grad, %lr : ...) outs(%param : ...) { ... }
      return
    }
    exec.program arena 64 {
      exec.dispatch_parameters @Sgd_scalars of [@g0] [#exec.scalars<offset = 0, columns = 1>]
      exec.dispatch_chunks @Sgd_elementwise_f32
          of [#exec.table<kind = shard_chunks, from = <@g0, full, shards>>]
        [#exec.scalars<offset = 0, columns = 1>, #exec.shards<parameter>, #exec.shards<gradient>]
      exec.advance_steps
    }
    ```
  }];
  let options = [Option<
                     "target", "target", "std::string", "\"\"",
                     "what the code is for: cpu (this machine), cpu:<llvm cpu>, emulated:<gpu> or "
                     "interpret:<llvm cpu> or interpret:<gpu>; without it this machine">,
  ];
  let dependentDialects = ["::stepc::exec::ExecDialect", "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def PinProducts : Pass<"exec-pin-products", "::mlir::ModuleOp"> {
  let summary = "Gives products the algorithms of cuBLASLt that a table has for them";
  let description = [{
    The table is the module's attribute `exec.products`, which the pass removes. A product gets the entries
    for its extents, types, transposes and leading dimensions (those of contiguous blocks) and for the chip of
    the target. If two entries are for the same version of cuBLASLt and the same GPU, the product gets the one
    with the larger alignment. An entry is not used if it needs more than 64 bytes of alignment, which the
    workspace does not promise, or if it takes the workspace above `comm.workspace_limit`. The scratch grows
    to the largest workspace of an algorithm, rounded up to 256 bytes. A symmetric product gets no algorithm,
    because cuBLASLt does not promise that both halves are equal. A missed remark says why a product has no
    algorithm.

    Before:
    ```mlir
    module attributes
        {exec.products = [#exec.product_entry<m = 48, n = 16, k = 16, lhs = bf16, rhs = bf16, out = bf16,
           leading = [16, 16, 16], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132,
           alignment = 16, algorithm = 66>>]} {
      exec.program arena 8192 {
        exec.product tensorcore of … <…, block = tensor<48x16xbf16>> by <…, block = tensor<16x16xbf16>> to …
      }
    }
    ```
    After:
    ```mlir
    exec.product tensorcore of … to …
      pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16,
        algorithm = 66>]
    ```
  }];
  let dependentDialects = ["::stepc::exec::ExecDialect"];
}

def MergeDispatches : Pass<"exec-merge-dispatches", "::mlir::ModuleOp"> {
  let summary = "Makes dispatches of one kernel one, for all groups";
  let description = [{
    A dispatch over chunks or parameters joins an earlier dispatch of the same kernel. The condition is that
    it shares no memory with that dispatch or any dispatch in between. They share memory if their parts of the
    workspace overlap, or if they use shards of the same group. A dispatch does not move past other commands
    (products, copies, collectives). The result of each element stays the same.

    Before:
    ```mlir
    exec.dispatch_parameters @Sgd_scalars of [@g0] [#exec.scalars<offset = 0, columns = 1>]
    exec.dispatch_parameters @Sgd_scalars of [@g1] [#exec.scalars<offset = 64, columns = 1>]
    ```
    After:
    ```mlir
    exec.dispatch_parameters @Sgd_scalars of [@g0, @g1]
      [#exec.scalars<offset = 0, columns = 1>, #exec.scalars<offset = 64, columns = 1>]
    ```
  }];
  let statistics = [
    Statistic<"mergedDispatches", "merged-dispatches", "dispatches that joined another">,
  ];
  let dependentDialects = ["::stepc::exec::ExecDialect"];
}

def JoinProducts : Pass<"exec-join-products", "::mlir::ModuleOp"> {
  let summary = "Lets products of one kernel begin together";
  let description = [{
    A product joins an earlier one if the target computes both by one launch (`Target::canJoin`), and if it
    shares no memory with any product from that one on. It moves behind the products that joined before. A
    product does not move past other commands. Products with algorithms of a library join none. The result of
    each product stays the same.

    Before:
    ```mlir
    exec.product tensorcore of @t0 … to <offset = 0, bytes = 131072, block = tensor<256x256xbf16>> {…}
    exec.product tensorcore of @t1 … to <offset = 131072, bytes = 32768, block = tensor<128x128xbf16>> {…}
    ```
    After:
    ```mlir
    exec.product tensorcore of @t0 … to <offset = 0, bytes = 131072, block = tensor<256x256xbf16>> {…}
    exec.product tensorcore of @t1 … to <offset = 131072, bytes = 32768, …> {…, joins}
    ```
  }];
  let statistics = [
    Statistic<"joinedProducts", "joined-products", "products that begin with another">,
  ];
  let dependentDialects = ["::stepc::exec::ExecDialect"];
}

def LowerToTarget : Pass<"exec-lower-to-target", "::mlir::ModuleOp"> {
  let summary = "Lets the target make code of what the program says";
  let description = [{
    The target of the module's chip (passes/kernels/Target.h) turns every kernel into a function of the kernel
    ABI (runtime/include/stepc/kernel_abi.h), which walks chunks or parameters. It also makes the kernels of
    products and functions of blocks, and equal ones share theirs. It is an error if a kernel does not fit its
    dispatches, if a command has less scratch than the target needs, or if a product has another accumulation.

    Before:
    ```mlir
    exec.apply #optim.block_reduce<norm> of <kind = block_chunks, from = <@g0, full, blocks>>
      <offset = 0, bytes = 512, block = tensor<8x16xf32>>
      to <offset = 512, bytes = 4, block = tensor<1x1xf32>>
    ```
    After:
    ```mlir
    exec.apply #optim.block_reduce<norm> of <kind = block_chunks, from = <@g0, full, blocks>>
      <offset = 0, bytes = 512, block = tensor<8x16xf32>>
      to <offset = 512, bytes = 4, block = tensor<1x1xf32>>
      kernels [#exec.kernel<@stepc_reduce_norm_one_whole_8x16_f32, items = 1>]
    llvm.func internal @stepc_reduce_norm_one_whole_8x16_f32(%arguments: !llvm.ptr, %first: i64,
                                                              %last: i64) { ... }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect"];
}

def ExpandNumerics : Pass<"kernels-expand-numerics", "::mlir::ModuleOp"> {
  let summary = "Spells out the operations whose bits a chip or a library could decide";
  let description = [{
    Afterwards kernels hold only IEEE operations and integer operations, and call no math library:
    - bf16 ↔ f32 as integer operations (round to nearest, ties to even; a NaN becomes quiet); also
      f16 ↔ f32 on chips without conversions in hardware;
    - exp and log of f32 as one polynomial sequence, the same for vectors and scalars (≤ 2 ulp);
    - rsqrt as 1 / sqrt: two roundings;
    - a power of f32 with a constant whole exponent up to 4 as products (if it is negative, as 1 / a
      product), any other as a power of f64, rounded once;
    - exp, log and powers of f64 as series (≤ 1 ulp), with the same bits on every chip;
    - on chips without fused multiply-adds, fused multiply-adds of f32 by exact products in f64.

    It is an error if an operation is left that would become a call, such as a remainder, or a fused
    multiply-add of f64 on these chips.

    Before:
    ```mlir
    %r = math.rsqrt %x : vector<16xf32>
    ```
    After:
    ```mlir
    %one = arith.constant dense<1.0> : vector<16xf32>
    %s = math.sqrt %x : vector<16xf32>
    %r = arith.divf %one, %s : vector<16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def KernelsToGpu : Pass<"exec-kernels-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Kernels, products and functions of blocks as functions that a GPU's blocks run";
  let description = [{
    Every kernel that dispatches name gets a `gpu.func` of its name in one `gpu.module`; the kernel itself
    stays, and says what the function computes. In a kernel over chunks, a GPU block of 256 threads takes a
    chunk. The threads share out its rows and columns by shifts. A thread takes eight columns at once if all
    operands are aligned to 16 bytes, otherwise, and at the end of a row, one column. In a kernel over
    parameters, a thread takes one parameter. The kernels read the active flags, and skip what the step skips.
    An element has the same operations on all paths, so its bits do not depend on where it stands. Numerics
    are expanded as on CPUs (`kernels-expand-numerics`): no function of libdevice is called, nothing is
    contracted.

    Arguments of a kernel over chunks are the rows, the workspace, the parameters' records (kernel_abi.h) and
    a list of shards per operand that is shards. Arguments of one over parameters are the rows, the workspace,
    the records and the number of rows. All point to the device's memory.

    A reduction gets the functions that compute it one after another, each with a number of GPU blocks per
    slot (GpuKernels.h). Their arguments are the scratch, the source and the out. A warp adds up numbers
    exactly (gpu/SumBuilder.h). A product gets one function, in which each GPU block computes a tile. Its
    arguments are the scratch, the operands, the addend if there is one, the out, and the factors. The
    accumulation of a product must be `fused_chain` or `tensorcore`.

    Before:
    ```mlir
    func.func private @Sgd_elementwise_f32(%scalars: memref<1xf32>, %param: memref<?x?xf32, strided<[?, 1]>>,
        …) { … }
    exec.program … { exec.dispatch_chunks @Sgd_elementwise_f32 of […] […] }
    ```
    After, beside these:
    ```mlir
    gpu.module @kernels [#nvvm.target<chip = "sm_80", features = "+ptx80", O = 3>] {
      gpu.func @Sgd_elementwise_f32(%chunks: !llvm.ptr<1>, %workspace: !llvm.ptr<1>, %records: !llvm.ptr<1>,
          %param: !llvm.ptr<1>, …) kernel
          attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32} { … }
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_80\"", "the oldest chip that the code is for">,
    Option<"features", "features", "std::string", "\"+ptx80\"",
           "of LLVM's NVPTX target; the version of PTX among them">,
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect"];
}

def AssembleGpu : Pass<"gpu-assemble", "::mlir::ModuleOp"> {
  let summary = "PTX as machine code of a chip, in constants";
  let description = [{
    The one `gpu.binary`, whose object is PTX, becomes machine code for `chip`, by ptxas of CUDA 13.1 or
    later. STEPC_CUDA_BIN names its folder. Otherwise the pass takes the first ptxas that is new enough: on
    the path, in CUDA_HOME or CUDA_PATH, among pip's packages beside stepc's, in /usr/local/cuda. For much
    PTX, ptxas has four threads; the instructions do not depend on their number. The constants have the types
    of kernel_abi.h. With `ptx` the PTX stays as a second image, for later chips.

    Before:
    ```mlir
    gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_80">, properties = {…}, assembly = "…">]
    ```
    After:
    ```mlir
    llvm.mlir.global internal constant @stepc_image_sm_90("…") {alignment = 16 : i64}
    llvm.mlir.global internal constant @stepc_chip_sm_90("sm_90\00")
    llvm.mlir.global internal constant @stepc_program_images()
        : !llvm.array<2 x struct<(ptr, i64, i64, i64, ptr, i64, i64, i64)>> { … }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_80\"", "sm_80, sm_90a, …">,
    Option<"ptx", "ptx", "bool", "false", "keep the PTX, too">,
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect"];
}

def MathToIntrinsics : Pass<"gpu-math-to-intrinsics", "::mlir::gpu::GPUModuleOp"> {
  let summary = "IEEE functions as LLVM's intrinsics, which PTX has instructions for";
  let description = [{
    The conversion to NVVM would call functions of libdevice for these operations of math, and for minimum and
    maximum. LLVM's intrinsics become instructions of PTX, which round as IEEE 754 says.

    Before:
    ```mlir
    %r = math.sqrt %x : vector<8xf32>
    ```
    After:
    ```mlir
    %r = llvm.call_intrinsic "llvm.sqrt"(%x) : (vector<8xf32>) -> vector<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def EmbedPlan : Pass<"kernels-embed-plan", "::mlir::ModuleOp"> {
  let summary = "Turns the program and the symbols of the plan into its bytes, in one constant with the "
                "kernels";
  let description = [{
    Gives symbols, tables and kernels their numbers, and defines the `stepc_program` of kernel_abi.h:
    `stepc_program_cpu` in a module for CPUs, `stepc_program_cuda_sm_90a` in one for that GPU, and so on. The
    `stepc_program` points to the plan, to the kernels that commands name and to the device. It has the hash
    of the plan's bytes, by which the runtime finds damage to them. The link of a library says which programs
    the library has, and defines its entry.

    Kernels for the target interpret become an image of records (runtime/interpret) here. The program hash in
    the plan is the hash of the kernels, without locations. Symbols of optim and comm, and the program, are
    gone afterwards. It is an error at a command if the command names what is not there, leaves the workspace,
    or awaits what was not started.

    Before:
    ```mlir
    optim.mesh @world axes ["dp"] sizes [1] ranks [0]
    exec.program arena 64 { ... }
    ```
    After:
    ```mlir
    llvm.mlir.global internal constant @stepc_program_plan("STEPCPLN...") : !llvm.array<1024 x i8>
    llvm.mlir.global internal constant @stepc_program_target("cpu\00")
    llvm.mlir.global internal constant @stepc_program_kernels() : !llvm.array<2 x ptr> { ... }
    llvm.mlir.global external hidden constant @stepc_program_cpu()
        : !llvm.struct<(i64, ptr, ptr, i64, i64, i64, ptr, ptr, ptr)> { ... }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VerifyLevel : Pass<"kernels-verify-level", "::mlir::ModuleOp"> {
  let summary = "Refuses what may not survive a level, by name";
  let description = [{
    At level `exec` no computation of optim or comm may be left. At level `llvm` only operations of the LLVM
    dialect may be left. At both levels, an operation whose rounding the chip chooses (`vector.fma`,
    `llvm.intr.fmuladd`) and fast-math flags are errors. The pass changes only the module's `stepc.level`.

    Before:
    ```mlir
    module attributes {stepc.level = "scheduled"} { exec.program arena 64 { ... } }
    ```
    After:
    ```mlir
    module attributes {stepc.level = "exec"} { exec.program arena 64 { ... } }
    ```
  }];
  let options = [
    Option<"level", "level", "std::string", "\"exec\"", "exec or llvm">,
  ];
}

#endif
