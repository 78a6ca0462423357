//===- Passes.td - Passes that prove ---------------------------*- tablegen -*-===//
#ifndef STEPC_PASSES_VERIFY_PASSES_TD
#define STEPC_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyProgram : Pass<"exec-verify-program", "::mlir::ModuleOp"> {
  let summary = "Prove a program for all ranks (P4, P5)";
  let description = [{
    Reads level 5 as it is printed and expands its plan for every rank with the runtime's own function. It
    changes nothing: a program that it accepts comes out as it went in, with a remark that says what was
    proven. Any other is an error at the command to blame. A command has the location of the operation of
    level 4 that it was made of, or of all of them. The pass calls none that decides or schedules and
    knows nothing of their bookkeeping: it compares with the rules, placements, owners and segments in the
    text.

    The commands run once on terms, over the bytes of the workspace. Proven is:
    1. a command reads a value where one stands as a whole, in the same layout (place of its table,
       extents and type of its blocks, scalars of its group), and no command has written over it since; in
       between no byte of it is another's;
    2. what a command writes stands apart from all else that it reads or writes, but for operands that are
       passed over together, element by element; the tables of one dispatch do not depend on each other;
    3. what is in flight is not touched, and all that arrives is read; each collective is awaited once;
    4. kernels are functions of this level, whose operations are evaluated: so literals, operations, views
       and columns of scalars count. Products and reductions count with sizes, factors and types; one that
       is mirrored is symmetric;
    5. at the end the shards of every segment hold what the group's rule yields of the parameter,
       gradient, states and scalars with which the step began. Each block of a group stands in one segment
       (in none, if its rule changes nothing); gradients are not written; the step counts advance once,
       behind all else;
    6. operands are inside of the workspace, and it obeys `comm.workspace_limit`, if there is one.

    So a read of another version of shards, a missing or repeated command and another operation are
    refused. Terms are compared as written: equal operations and attributes on equal operands, but for the
    order of commutative operands, folded conversions, and `optim.orthogonalize`, which stands for its
    documented sequence of products. Literal numbers (constants, the factors of a product) are part of it,
    rounded to the type in which they meet a value. A rewrite that needs other operations or numbers must
    change the rule, too.

    The tables are then proven for every rank of the world:
    7. what passes over shards visits each element of the segment's local shards once, and what fills
       computed blocks fills each element of each block that the rank computes once;
    8. an all-gather brings all blocks to every rank; whatever travels stays among ranks that the start's
       communicator brings together; of every exchange, every send has its receive with equal bytes, all
       that the sent buffer holds leaves and all that arrives is read, once, and the element that leaves
       is the element that arrives;
    9. every operand and the scratch have bytes for what the commands reach on the rank that reaches
       furthest; batches that share a part of the workspace are apart.

    Not proven: that a target's code computes what an operation says (tests compare with a reference), and
    what a transport does with messages. Nothing is proven of a text of an earlier level before it is
    lowered to this one, and nothing of one that was edited at level 6.

    ```mlir
    exec.dispatch_chunks @Sgd_elementwise_f32
        of [...] [#exec.scalars<...>, #exec.shards<gradient>, #exec.shards<parameter>]
    // error: 'exec.dispatch_chunks' op expected writes of parameters and states, because gradients belong to
    //        the trainer, found one of the gradient
    ```
  }];
}

#endif
