//===- CommInterfaces.td - What all collectives share ----------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_COMM_COMMINTERFACES_TD
#define STEPC_DIALECTS_COMM_COMMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Comm_CollectiveInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::stepc::comm";
  let description = [{
    An operation in which ranks meet. It moves pieces of segments between buffers: send i holds the `send`
    layout of send_segments[i], receive i the `receive` layout of receive_segments[i].
    Constraints (checked here for all of them): as many sends as receives, segments and kinds; each
    pair has equal element types; buffers are one-dimensional. Segments exist (SymbolUserOpInterface).
  }];
  let methods = [
    InterfaceMethod<"What is sent.", "::mlir::OperandRange", "getSends">,
    InterfaceMethod<"Where it arrives.", "::mlir::OperandRange", "getReceives">,
    InterfaceMethod<"Segments of the sends.", "::mlir::ArrayAttr", "getSendSegments">,
    InterfaceMethod<"Segments of the receives.", "::mlir::ArrayAttr", "getReceiveSegments">,
    InterfaceMethod<"Value kinds.", "::llvm::ArrayRef<int64_t>", "getKinds">,
    InterfaceMethod<"Towards matrices or shards.", "::stepc::comm::Direction", "getDirection">,
  ];
  let verify = [{ return ::stepc::comm::detail::verifyCollective($_op); }];
}

#endif
