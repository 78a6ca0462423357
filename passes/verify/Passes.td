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
    bookkeeping: what it compares with are placements (geometry), owners, the blocks of segments and the rules in the
    text. Decisions that the step has used up (`optim.space`, `optim.writes`, `waves`, `wave`) are not looked at.

    Proven, for every rank of the world, are:
    1. each block of a group stands in at most one segment; the operations over blocks of one form handle each block
       of the group equally often, stages over shards of one form once; a parameter or state is written once for each
       block, or never where the rule gives it back as it came; gradients are not written;
    2. a stage over shards visits each element of the segment's local shards once, and a copy to shards writes each
       once; what fills computed blocks fills each element of each block that the rank computes once;
    3. of every exchange, every send has its receive with equal bytes, all that the sent buffer holds leaves and all
       that arrives is read, once, and the element that leaves is the element that arrives;
    4. collectives stand in the step itself, in one total order from 0 on, each with one wait after it;
    5. every buffer has bytes for all that each operation reaches in it, on the rank that reaches furthest, and is
       inside of the workspace; while a value lives (from its write, or the start that receives it, to its last read,
       and to the wait for what travels) no other value is written into its bytes; the workspace is at most
       `comm.workspace_limit`, where there is one;
    6. a buffer is read only after a value of that segment, layout, direction and kind was written to it and, if it
       travels, was waited for; between a start and its wait what is sent is not written, and what is received neither
       read nor written; the extent of a buffer is that of what it holds;
    7. for each segment, the parameter, states and gradient end the step as the expression that the group's rule
       yields of the parameter, gradient, states and scalars with which the step began. So a read of another version
       of shards, a missing or repeated operation and another operation are refused. Compared are expressions, as
       written: equal operations and attributes on equal operands, but for the order of commutative operands, folded
       conversions, and `optim.orthogonalize`, which stands for its documented sequence of products. Literal numbers
       (constants, the factors of a product) are part of it, rounded to the type in which they meet a value. A rewrite
       that needs other operations or numbers must change the rule, too;
    8. a product that computes one half is symmetric; operands of a stage over blocks have the extents that it runs
       over, or 1, its outs the former;
    9. nothing in the step allocates, copies memory or is a tensor.

    Not proven: that kernels compute what an operation says (tests compare with a reference), what a transport does
    with messages, and anything about a text that was edited at level 5 or later. There the numbers of tables, launches and exchanges are checked for
    consistency, and the runtime's counters refuse a step that ran other launches than its plan lists.

    ```mlir
    comm.segment @g0_w0 group @g0 blocks [0]
    comm.segment @g0_w1 group @g0 blocks [0, 1]
    // error: 'comm.stage' op expected each block of group @g0 to be handled once by operations of this form,
    //        found parameter 'a' handled 2 times
    ```
  }];
}

#endif
