//===- Passes.td - Passes that prove ---------------------------*- tablegen -*-===//
#ifndef STEPC_PASSES_VERIFY_PASSES_TD
#define STEPC_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyProgram : Pass<"exec-verify-program", "::mlir::ModuleOp"> {
  let summary = "Prove a program for all ranks (P4, P5)";
  let description = [{
    Reads level 5 as it is printed, and expands its plan for every rank with the runtime's own function. The
    pass changes nothing. If it accepts the program, a remark says what was proven. Otherwise an error is at
    the command to blame, which has the locations of the operations of level 4 that it was made of. The pass
    calls no pass that decides or schedules, and does not know their bookkeeping. It compares the program with
    the rules, placements, owners and segments in the text.

    The commands run once on terms, over the bytes of the workspace. The pass proves that
    1. a value that a command reads stands there as a whole, in the layout in which the command reads it
       (place of its table, extents and type of its blocks, scalars of its group), and no command has written
       over any byte of it in between;
    2. what a command writes overlaps nothing else that the command reads or writes, except operands that it
       passes over together, element by element; the tables of one dispatch do not depend on each other;
    3. no command writes what is in flight, or reads what has not arrived; all that arrives is read; each
       collective is awaited once;
    4. kernels are functions of this level. The pass evaluates their operations, so literals, operations,
       views and columns of scalars count. Products and functions of blocks count with sizes, factors and
       types. A product that is mirrored equals its transpose;
    5. at the end the shards of every segment hold what the group's rule yields of the parameter,
       gradient, states and scalars with which the step began. Each block of a group stands in one segment
       (or in none, if the group's rule changes nothing). No command writes gradients. The step counts advance
       once, after all other commands;
    6. operands lie inside of the workspace, and its size obeys `comm.workspace_limit`, if there is one.

    For example, a read of another version of shards, a missing command and another operation are refused. Two
    terms are equal if they have equal operations and attributes on equal operands. Three differences do not
    count: the order of commutative operands, conversions that fold, and `optim.orthogonalize` in the place of
    its documented sequence of products. Literal numbers (constants, the factors of a product) are part of a
    term, rounded to the type in which they meet a value. A rewrite that needs other operations or numbers
    must also change the rule.

    The pass then proves the tables, for every rank of the world:
    7. a stage over shards visits each element of the segment's local shards once. What fills shards or
       computed blocks fills each element of them once;
    8. an all-gather is used only where all ranks receive the same blocks or sums. Whatever travels stays
       among ranks that the start's communicator brings together. Every send has its receive with equal bytes.
       All that the sent buffer holds leaves. All that arrives is read once, or, if a hop chooses owners among
       ranks that have copies, each owner reads its blocks. The element that leaves is the element that
       arrives;
    9. every operand and the scratch are large enough for the commands on the rank that needs most. Batches
       that share a part of the workspace do not overlap.

    The pass does not prove that a target's code computes what an operation says (tests compare with a
    reference), nor what a transport does with messages. The text of an earlier level is proven when it has
    been lowered to level 5. A text that was edited at level 6 is not proven.

    ```mlir
    exec.dispatch_chunks @Sgd_elementwise_f32
        of [...] [#exec.scalars<...>, #exec.shards<gradient>, #exec.shards<parameter>]
    // error: 'exec.dispatch_chunks' op expected writes of parameters and states, because gradients belong to
    //        the trainer, found one of the gradient
    ```
  }];
}

#endif
