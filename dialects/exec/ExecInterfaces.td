//===- ExecInterfaces.td - What all commands and operands share -*- tablegen -*-===//
#ifndef STEPC_DIALECTS_EXEC_EXECINTERFACES_TD
#define STEPC_DIALECTS_EXEC_EXECINTERFACES_TD

include "mlir/IR/OpBase.td"

def Exec_OperandInterface : AttrInterface<"OperandAttrInterface"> {
  let cppNamespace = "::stepc::exec";
  let description = [{
    What a kernel, a copy or a collective reads or writes: a part of the workspace, or memory that the trainer
    bound.
  }];
  let methods = [
    InterfaceMethod<[{The plan's form of this operand, for a command on blocks of group `group` of the plan.
      An error at `op` if the group has no such thing.}],
      "::llvm::FailureOr<::stepc::plan::Operand>", "lower",
      (ins "::mlir::Operation *":$op, "const ::stepc::plan::Plan &":$plan, "int64_t":$group)>,
  ];
}

def Exec_CommandInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::stepc::exec";
  let description = [{
    A command of the program. An `exec.program` lists its commands in the order in which a step executes them.
  }];
  let methods = [
    InterfaceMethod<"The command of the plan that this operation is; numbers come from `numbering`.",
      "::llvm::FailureOr<::stepc::plan::Command>", "lower", (ins "::stepc::exec::Numbering &":$numbering)>,
  ];
}

def Exec_BatchInterface : OpInterface<"BatchOpInterface"> {
  let cppNamespace = "::stepc::exec";
  let description = [{
    A command on computed blocks. A device may compute it with a library of its own. Otherwise it runs the
    kernels that the target makes on the way to level 6, with `scratch` bytes per block. The arguments of all
    kernels are the scratch, then the batches in order.
  }];
  let methods = [
    InterfaceMethod<"The batches that its kernels get, in order.",
      "::llvm::SmallVector<::mlir::Attribute>", "getBatches">,
    InterfaceMethod<"Bytes of scratch for each block.", "uint64_t", "getScratch">,
    InterfaceMethod<"", "void", "setScratch", (ins "uint64_t":$bytes)>,
    InterfaceMethod<"Its kernels; none before level 6.", "::mlir::ArrayAttr", "getKernelsAttr">,
    InterfaceMethod<"", "void", "setKernelsAttr", (ins "::mlir::ArrayAttr":$kernels)>,
  ];
}

#endif
