//===- ExecEnums.td - Enumerations of the exec dialect ---------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_EXEC_EXECENUMS_TD
#define STEPC_DIALECTS_EXEC_EXECENUMS_TD

include "mlir/IR/EnumAttr.td"

// The numbers are those of runtime/plan/Plan.h; static_asserts hold them equal.
def Exec_TableKind : I64EnumAttr<"TableKind", "what the rows of a table are", [
  I64EnumAttrCase<"ShardChunks", 0, "shard_chunks">, // of a stage over shards
  I64EnumAttrCase<"BlockChunks", 1, "block_chunks">, // of a stage over computed blocks
  I64EnumAttrCase<"Copy", 2, "copy">,                // moves from one layout to another
  I64EnumAttrCase<"Message", 3, "message">,          // what goes to and comes from each peer
  I64EnumAttrCase<"Sum", 4, "sum">]> {               // adds up what several ranks contributed
  let cppNamespace = "::stepc::exec";
}

def Exec_Accumulation : I64EnumAttr<"Accumulation", "in which order a product adds up, and where it rounds", [
  I64EnumAttrCase<"FusedChain", 0, "fused_chain">,     // multiply-adds over increasing k, rounded once each
  I64EnumAttrCase<"RoundedChain", 1, "rounded_chain">, // likewise, each product rounded before it is added
  I64EnumAttrCase<"TensorCore", 2, "tensorcore">]> {   // a GPU's mma of 16 steps each, over increasing k
  let cppNamespace = "::stepc::exec";
}

#endif
