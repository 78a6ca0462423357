//===- CommInterfaces.td - What all collectives share ----------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_COMM_COMMINTERFACES_TD
#define STEPC_DIALECTS_COMM_COMMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Comm_CollectiveInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::stepc::comm";
  let description = [{
    An operation in which ranks meet. It moves values of segments from one distribution to another: the
    elements of send i arrive in receive i of other ranks.
    Constraints (this interface verifies them): as many sends as receives, at least one; the places of each
    pair are the two ends of one move of one kind of value; both have equal element types.
  }];
  let methods = [
    InterfaceMethod<"The values that are sent.", "::mlir::OperandRange", "getSends">,
    InterfaceMethod<"The buffers in which they arrive.", "::mlir::OperandRange", "getReceives">,
    InterfaceMethod<"How ranks meet.", "::stepc::comm::CollectiveKind", "getKind">,
  ];
  let verify = [{ return ::stepc::comm::detail::verifyCollective($_op); }];
}

#endif
