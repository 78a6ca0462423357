//===- CommInterfaces.td - What all collectives share ----------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_COMM_COMMINTERFACES_TD
#define STEPC_DIALECTS_COMM_COMMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Comm_CollectiveInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::stepc::comm";
  let description = [{
    An operation in which ranks meet. It takes values of segments from one distribution to another: what send
    i holds arrives in receive i of other ranks.
    Constraints (checked here for all of them): as many sends as receives, at least one; the places of each
    pair are the two ends of one move of one kind of value, and have equal element types.
  }];
  let methods = [
    InterfaceMethod<"The values that are sent.", "::mlir::OperandRange", "getSends">,
    InterfaceMethod<"The buffers in which they arrive.", "::mlir::OperandRange", "getReceives">,
    InterfaceMethod<"How ranks meet.", "::stepc::comm::CollectiveKind", "getKind">,
  ];
  let verify = [{ return ::stepc::comm::detail::verifyCollective($_op); }];
}

#endif
