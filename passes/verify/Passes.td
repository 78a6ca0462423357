//===- Passes.td - Passes that prove ---------------------------*- tablegen -*-===//
#ifndef STEPC_PASSES_VERIFY_PASSES_TD
#define STEPC_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyPlan : Pass<"comm-verify-plan", "::mlir::ModuleOp"> {
  let summary = "Prove a scheduled program for all ranks (P4, P5)";
  let description = [{
    Reads level 4 as it is printed and expands its plan for every rank with the runtime's own function. It changes
    nothing: a program that it accepts comes out as it went in, with a remark that says what was proven; any other is
    an error at the operation to blame. It calls no pass that decides or schedules and knows nothing of their
    bookkeeping: what it compares with are placements (geometry), owners and the blocks of segments.

    Proven are:
    1. every block of a group is handled by every kind of the group's operations, stages over shards once, and each
       parameter and state is written once;
    2. every element of the blocks that a rank computes arrives once, every element of a shard comes back once;
    3. every send has its receive, with equal bytes, and the element that leaves is the element that arrives;
    4. all ranks start collectives in one total order, and each has one wait;
    5. buffers are large enough on every rank, inside of the workspace, apart while they live (from the write to the
       last read; to the wait for what is in flight), and the workspace obeys `comm.workspace_limit`;
    6. a value is read after it was written and has arrived, and nothing in flight is touched;
    7. nothing allocates, copies memory or is a tensor.

    ```mlir
    comm.segment @g0_w0 group @g0 blocks [0]
    comm.segment @g0_w1 group @g0 blocks [0, 1]
    // error: 'comm.stage' op expected each block of group @g0 to be handled once by operations of this form,
    //        found parameter 'a' handled 2 times
    ```
  }];
}

#endif
