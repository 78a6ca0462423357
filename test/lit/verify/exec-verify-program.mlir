// Programs that do what their rules say (Inputs/exec.mlir), as the passes leave them and as an edit may leave them.
// DEFINE: %{from} = %S/../Inputs/exec.mlir
// DEFINE: %{check} = stepc-opt --exec-verify-program -o /dev/null
// The verifier changes nothing.
// RUN: stepc-opt %{from} -o %t.expected
// RUN: stepc-opt --exec-verify-program %{from} | diff - %t.expected
// All ranks of the mesh, instead of the world.
// RUN: sed -e 's/exec.start exchange/exec.start exchange on <@dp, [<0, 1, 2>]>/' %{from} | %{check}
// The groups of a dispatch in another order, with their operands.
// RUN: sed -e 's/of .@ga, @gb./of [@gb, @ga]/' -e '/exec.dispatch_parameters/,/exec.dispatch_chunks/{s/512/570/;s/576/512/;s/570/576/}' %{from} | %{check}
// An operand elsewhere, where nothing else stands: more workspace than needed is no fault.
// RUN: sed -e 's/arena 1280 /arena 1408 /' -e 's/offset = 512, columns/offset = 1280, columns/' %{from} | %{check}
// Smaller rows of tables.
// RUN: sed -e 's/scratch 1536 {$/scratch 1536 chunk 8 {/' %{from} | %{check}
