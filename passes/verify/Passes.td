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
    3. an all-gather brings all blocks to every rank; whatever travels stays among ranks that the start's communicator brings
       together; of every exchange, every send has its receive with equal bytes, all that the sent buffer holds leaves and all
       that arrives is read, once, and the element that leaves is the element that arrives;
    4. collectives stand in the step itself, in one total order from 0 on, each with one wait after it; the step counts advance
       once, behind all else;
    5. every buffer has bytes for all that each operation reaches in it, on the rank that reaches furthest, and is
       inside of the workspace; while a value lives (from its write, or the start that receives it, to its last read,
       and to the wait for what travels) no other value is written into its bytes; the workspace is at most
       `comm.workspace_limit`, where there is one;
    6. a buffer is read only after it was written and, if it travels, was waited for; between a start and its wait what
       is sent is not written, and what is received neither read nor written; the extent of a buffer is that of its
       place. (That an operation may read and write there is a matter of types: the dialect checks places.)
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

    Not proven: that a target's code computes what an operation says (tests compare with a reference), and what a transport
    does with messages. A text of level 5 is proven by `exec-verify-program`; one that was edited at level 6 by nothing.

    ```mlir
    comm.segment @g0_w0 group @g0 blocks [0]
    comm.segment @g0_w1 group @g0 blocks [0, 1]
    // error: 'comm.stage' op expected each block of group @g0 to be handled once by operations of this form,
    //        found parameter 'a' handled 2 times
    ```
  }];
  let options = [
    Option<"rowElements", "row-elements", "int64_t", "::stepc::plan::kChunkElements",
           "how many elements a row of the tables has at most: what the target takes that the program is compiled for">,
  ];
}

def VerifyProgram : Pass<"exec-verify-program", "::mlir::ModuleOp"> {
  let summary = "Prove that the commands of level exec do what the rules say (P4, P5)";
  let description = [{
    Reads level 5 as it is printed, and changes nothing. What it compares with are the rules, placements and owners in the
    text. It runs the commands once on terms, as `comm-verify-plan` does with level 4, over the bytes of the workspace:
    1. a command reads a value where one stands as a whole, in the same layout (place of its table, extents and type of its
       blocks, scalars of its group), and no command has written over it since; in between no byte of it is another's;
    2. what a command writes stands apart from all else that it reads or writes, but for operands that are passed over
       together, element by element; the tables of one dispatch do not depend on each other;
    3. what is in flight is not touched, and all that arrives is read;
    4. kernels are functions of this level, whose operations are evaluated: so literals, operations, views and columns of
       scalars count. Products and reductions count with sizes, factors and types; one that is mirrored is symmetric;
    5. at the end the shards of every segment hold what the rule yields of what they held, and each block of a group stands
       in one segment (in none, if its rule changes nothing); gradients are not written;
    6. operands are inside of the workspace, and it obeys `comm.workspace_limit`, where there is one;
    7. what `comm-verify-plan` proves of tables: routes, messages, coverage of shards and blocks; and that every operand and
       the scratch have bytes for what the commands reach on the rank that reaches furthest.

    ```mlir
    exec.dispatch_chunks @Sgd_elementwise_f32 of [...] [#exec.scalars<...>, #exec.shards<gradient>, #exec.shards<parameter>]
    // error: 'exec.dispatch_chunks' op expected writes of parameters and states, because gradients belong to the trainer,
    //        found one of the gradient
    ```
  }];
  let options = [
    Option<"provenRowElements", "proven-row-elements", "int64_t", "0",
           "(7) was proven of level 4 just now, with rows of so many elements at most: it is not proven again if the "
           "program's are as long">,
  ];
}

#endif
