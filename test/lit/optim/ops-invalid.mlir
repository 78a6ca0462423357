// Every error of the operations in a rule and on batches.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// Broadcast does not convert.
func.func @f(%x: tensor<?x1xbf16>) {
  // expected-error @below {{expected equal element types and ranks, found 'tensor<?x1xbf16>' and 'tensor<?x?xf32>'}}
  %0 = optim.broadcast %x : tensor<?x1xbf16> to tensor<?x?xf32>
  return
}

// -----

// Broadcast does not add axes.
func.func @f(%x: tensor<1xf32>) {
  // expected-error @below {{expected equal element types and ranks, found 'tensor<1xf32>' and 'tensor<?x?xf32>'}}
  %0 = optim.broadcast %x : tensor<1xf32> to tensor<?x?xf32>
  return
}

// -----

// Broadcast makes axes longer, never shorter.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected axes that are equal or 1 in the source, found 'tensor<?x?xf32>' and 'tensor<?x1xf32>'}}
  %0 = optim.broadcast %x : tensor<?x?xf32> to tensor<?x1xf32>
  return
}

// -----

// A splat comes from f64.
func.func @f(%x: f32) {
  // expected-note @above {{prior use here}}
  // expected-error @below {{use of value '%x' expects different type than prior uses: 'f64' vs 'f32'}}
  %0 = optim.splat %x : tensor<?x?xf32>
  return
}

// -----

// What lerp mixes has one type.
func.func @f(%x: tensor<?x?xf32>, %y: tensor<?x1xf32>) {
  // expected-error @below {{failed to verify that all of {from, to, weight, result} have same type}}
  %0 = "optim.lerp"(%x, %y, %x) : (tensor<?x?xf32>, tensor<?x1xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

// Momentum has one type.
func.func @f(%x: tensor<?x?xf32>, %y: tensor<?x?xbf16>) {
  // expected-error @below {{failed to verify that all of {state, gradient, decay, result} have same type}}
  %0 = "optim.momentum"(%x, %y, %x) : (tensor<?x?xf32>, tensor<?x?xbf16>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

// What decays keeps its type.
func.func @f(%x: tensor<?x?xf32>, %s: f64) {
  // expected-error @below {{failed to verify that all of {parameter, result} have same type}}
  %0 = "optim.decay"(%x, %s, %s) : (tensor<?x?xf32>, f64, f64) -> tensor<?x?xbf16>
  return
}

// -----

// A reduction keeps the number of axes.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected equal ranks, found 'tensor<?x?xf32>' and 'tensor<?xf32>'}}
  %0 = optim.reduce sum %x : tensor<?x?xf32> to tensor<?xf32>
  return
}

// -----

// A reduced axis has one element.
func.func @f(%x: tensor<?x1xf32>) {
  // expected-error @below {{expected axes that are equal or 1 in the result, found 'tensor<?x1xf32>' and 'tensor<?x?xf32>'}}
  %0 = optim.reduce sum %x : tensor<?x1xf32> to tensor<?x?xf32>
  return
}

// -----

// Reductions in a rule are f32.
func.func @f(%x: tensor<?x?xbf16>) {
  // expected-error @below {{'optim.reduce' op operand #0 must be ranked tensor of 32-bit float values, but got 'tensor<?x?xbf16>'}}
  %0 = optim.reduce sum %x : tensor<?x?xbf16> to tensor<?x1xf32>
  return
}

// -----

// Factors meet along one extent, which is compared by its name.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{'optim.matmul' op expected equal inner extents, found factors of full and full}}
  %0 = optim.matmul %x, %x : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return
}

// -----

// The result has the outer extents.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{'optim.matmul' op expected a result of [rows, rows], found one of gram}}
  %0 = optim.matmul %x, %x {transpose_rhs} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<gram>>
  return
}

// -----

// Factors have one type.
func.func @f(%x: tensor<?x?xf32>, %y: tensor<?x?xbf16>) {
  // expected-error @below {{'optim.matmul' op expected factors of one element type, found 'tensor<?x?xf32>' and 'tensor<?x?xbf16>'}}
  %0 = optim.matmul %x, %y {transpose_rhs} : tensor<?x?xf32>, tensor<?x?xbf16> -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
  return
}

// -----

// A kind says what the type alone does not.
// expected-error @below {{expected other extents than the type tells, found rows}}
func.func @f(%x: tensor<?x1xf32, #optim.kind<rows>>) {
  return
}

// -----

// Extents are the block's, or numbers.
// expected-error @below {{expected an extent between 1 and 2^40, found 0}}
// expected-error @below {{failed to parse Optim_Kind parameter 'value'}}
func.func @f(%x: tensor<?x?xf32, #optim.kind<[cols, 0]>>) {
  return
}

// -----

// expected-error @below {{expected rows, cols, smaller, size0, size1, size2, size3, size4, size5, size6 or size7, found columns}}
// expected-error @below {{failed to parse Optim_Kind parameter 'value'}}
func.func @f(%x: tensor<?x?xf32, #optim.kind<[columns, 8]>>) {
  return
}

// -----

// Rows are no columns, where they are broadcast, reduced or orthogonalized, not even of a square block.
func.func @f(%x: tensor<?x1xf32>) {
  // expected-error @below {{'optim.broadcast' op expected axes that are equal or 1 in the source, found 'tensor<?x1xf32>' and 'tensor<?x?xf32, #optim.kind<[cols, cols]>>'}}
  %0 = optim.broadcast %x : tensor<?x1xf32> to tensor<?x?xf32, #optim.kind<[cols, cols]>>
  return
}

// -----

func.func @f(%x: tensor<?x?xf32, #optim.kind<[cols, cols]>>) {
  // expected-error @below {{'optim.reduce' op expected axes that are equal or 1 in the result, found 'tensor<?x?xf32, #optim.kind<[cols, cols]>>' and 'tensor<?x1xf32>'}}
  %0 = optim.reduce sum %x : tensor<?x?xf32, #optim.kind<[cols, cols]>> to tensor<?x1xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?xf32, #optim.kind<[cols, rows]>>) {
  // expected-error @below {{expected a source and a result of one shape, found 'tensor<?x?xf32, #optim.kind<[cols, rows]>>' and 'tensor<?x?xbf16>'}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32, #optim.kind<[cols, rows]>> to tensor<?x?xbf16>
  return
}

// -----

// Newton–Schulz is of blocks.
func.func @f(%x: tensor<?x?xf32, #optim.kind<gram>>) {
  // expected-error @below {{expected a full source, found 'tensor<?x?xf32, #optim.kind<gram>>'}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32, #optim.kind<gram>>
  return
}

// -----

// Newton–Schulz keeps the shape.
func.func @f(%x: tensor<?x1xf32>) {
  // expected-error @below {{expected a source and a result of one shape, found 'tensor<?x1xf32>' and 'tensor<?x?xf32>'}}
  %0 = "optim.orthogonalize"(%x) <{coefficients = [[1.5, -0.5, 0.0]], eps = 1.0e-07 : f64}> : (tensor<?x1xf32>) -> tensor<?x?xf32>
  return
}

// -----

// Newton–Schulz has at least one step.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected at least one step of coefficients}}
  %0 = optim.orthogonalize %x coefficients [] eps 1.0e-07 : tensor<?x?xf32>
  return
}

// -----

// A step has three coefficients.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected three numbers per step, found [1.500000e+00, -5.000000e-01]}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5]] eps 1.0e-07 : tensor<?x?xf32>
  return
}

// -----

// Coefficients are floating-point numbers.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected three numbers per step, found [1, 2, 3]}}
  %0 = optim.orthogonalize %x coefficients [[1, 2, 3]] eps 1.0e-07 : tensor<?x?xf32>
  return
}

// -----

// What is not of the operand type is f32.
func.func @f(%x: tensor<?x?xbf16>) {
  // expected-error @below {{expected a source of 'f16' or f32, found 'bf16'}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xbf16> to tensor<?x?xf16>
  return
}

// -----

// A zero matrix must not be divided by zero.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected an eps of at least 2^-100, finite in f32, found 0.000000e+00}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 0.0 : tensor<?x?xf32>
  return
}

// -----

// Nor by what overflows.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected an eps of at least 2^-100, finite in f32, found 1.000000e+60}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e+60 : tensor<?x?xf32>
  return
}

// -----

// Coefficients are multiplied in f32.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected coefficients that are finite in f32, found [1.000000e+300, -5.000000e-01, 0.000000e+00]}}
  %0 = optim.orthogonalize %x coefficients [[1.0e+300, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  return
}

// -----

// Products are of batches of matrices.
func.func @f(%x: tensor<8x8xf32>) {
  // expected-error @below {{expected operands of rank 3, found 'tensor<8x8xf32>'}}
  %0 = optim.product %x, %x outs(%x : tensor<8x8xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return
}

// -----

// A product has one out: scratch is the target's.
func.func @f(%x: tensor<?x8x8xf32>) {
  // expected-error @below {{expected ':'}}
  %0:2 = optim.product %x, %x outs(%x, %x : tensor<?x8x8xf32>, tensor<?x8x8xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64}
    : tensor<?x8x8xf32>, tensor<?x8x8xf32> -> tensor<?x8x8xf32>, tensor<?x8x8xf32>
  return
}

// -----

// The inner extents of a product agree.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x6xf32>) {
  // expected-error @below {{expected equal inner extents, found 6 and 8}}
  %0 = optim.product %x, %x outs(%o : tensor<?x8x6xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64} : tensor<?x8x6xf32>, tensor<?x8x6xf32> -> tensor<?x8x6xf32>
  return
}

// -----

// The out of a product has its extents.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x6x6xf32>) {
  // expected-error @below {{expected addend and out of 8 x 8}}
  %0 = optim.product %x, %x outs(%o : tensor<?x6x6xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs} : tensor<?x8x6xf32>, tensor<?x8x6xf32> -> tensor<?x6x6xf32>
  return
}

// -----

// So has its addend.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x6x6xf32>) {
  // expected-error @below {{expected addend and out of 6 x 6}}
  %0 = optim.product %x, %x plus %x outs(%o : tensor<?x6x6xf32>) {alpha = 1.0 : f64, beta = 1.0 : f64, transpose_lhs}
    : tensor<?x8x6xf32>, tensor<?x8x6xf32>, tensor<?x8x6xf32> -> tensor<?x6x6xf32>
  return
}

// -----

// Only a square result is symmetric.
func.func @f(%x: tensor<?x8x6xf32>, %y: tensor<?x6x4xf32>, %o: tensor<?x8x4xf32>) {
  // expected-error @below {{expected a square result for symmetric, found 8 x 4}}
  %0 = optim.product %x, %y outs(%o : tensor<?x8x4xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric} : tensor<?x8x6xf32>, tensor<?x6x4xf32> -> tensor<?x8x4xf32>
  return
}

// -----

// A function of blocks has an out.
func.func @f() {
  // expected-error @below {{expected 1 or more operands, but found 0}}
  "optim.apply"() <{function = #optim.block_reduce<sum>}> : () -> ()
  return
}

// -----

// A block reduction is of a batch.
func.func @f(%x: tensor<8x6xf32>, %o: tensor<8x1xf32>) {
  // expected-error @below {{expected operands of rank 3, found 'tensor<8x6xf32>'}}
  %0 = optim.apply #optim.block_reduce<sum> %x outs(%o : tensor<8x1xf32>) : tensor<8x6xf32> -> tensor<8x1xf32>
  return
}

// -----

// The out of a block reduction keeps the axes or has 1.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x3xf32>) {
  // expected-error @below {{expected an out of f32 with one value per block, row or column, found 'tensor<8x3xf32>' of 'tensor<8x6xf32>'}}
  %0 = optim.apply #optim.block_reduce<sum> %x outs(%o : tensor<?x8x3xf32>) : tensor<?x8x6xf32> -> tensor<?x8x3xf32>
  return
}

// -----

// Reductions are in f32.
func.func @f(%x: tensor<?x8x6xbf16>, %o: tensor<?x8x1xbf16>) {
  // expected-error @below {{expected an out of f32 with one value per block, row or column, found 'tensor<8x1xbf16>' of 'tensor<8x6xbf16>'}}
  %0 = optim.apply #optim.block_reduce<sum> %x outs(%o : tensor<?x8x1xbf16>) : tensor<?x8x6xbf16> -> tensor<?x8x1xbf16>
  return
}

// -----

// Only what has a root is scaled.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x1xf32>) {
  // expected-error @below {{expected an exponent between -30 and 30, and 0 but for norm and rms, found -24}}
  %0 = optim.apply #optim.block_reduce<sum, exponent = -24> %x outs(%o : tensor<?x8x1xf32>) : tensor<?x8x6xf32> -> tensor<?x8x1xf32>
  return
}

// -----

// A reduction is of one source.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x1xf32>) {
  // expected-error @below {{expected one source of a reduction, found 2}}
  %0 = optim.apply #optim.block_reduce<sum> %x, %x outs(%o : tensor<?x8x1xf32>) : tensor<?x8x6xf32>, tensor<?x8x6xf32> -> tensor<?x8x1xf32>
  return
}

// -----

// And not so far that small norms are lost.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x1xf32>) {
  // expected-error @below {{expected an exponent between -30 and 30, and 0 but for norm and rms, found -31}}
  %0 = optim.apply #optim.block_reduce<norm, exponent = -31> %x outs(%o : tensor<?x8x1xf32>) : tensor<?x8x6xf32> -> tensor<?x8x1xf32>
  return
}

// -----

// A reduction is of a known kind.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected sum, mean, rms, norm or max, found median}}
  %0 = optim.reduce median %x : tensor<?x?xf32> to tensor<?x1xf32>
  return
}

// -----

// And says which.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected sum, mean, rms, norm or max}}
  %0 = optim.reduce %x : tensor<?x?xf32> to tensor<?x1xf32>
  return
}

// -----

// The generic form has the same words.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected sum, mean, rms, norm or max, found median}}
  // expected-error @below {{failed to parse Optim_Reduction parameter 'value'}}
  %0 = "optim.reduce"(%x) <{kind = #optim.reduction<median>}> : (tensor<?x?xf32>) -> tensor<?x1xf32>
  return
}

// -----

// Restarts are for the Gram form.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected restarts only of the forms gram and auto, found them in standard}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0], [1.5, -0.5, 0.0]] eps 1.0e-07 restarts [1] : tensor<?x?xf32>
  return
}

// -----

// The last restart has a step after it.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected restart 1, the only one that 2 steps have a place for, found 2}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0], [1.5, -0.5, 0.0]] eps 1.0e-07 form gram restarts [1, 2] : tensor<?x?xf32>
  return
}

// -----

// The first restart has a step before it.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected restart 1, the only one that 2 steps have a place for, found 0}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0], [1.5, -0.5, 0.0]] eps 1.0e-07 form auto restarts [0, 1] : tensor<?x?xf32>
  return
}

// -----

// A form has a name.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected standard, gram or auto, found grams}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 form grams : tensor<?x?xf32>
  return
}

// -----

// f16 ends at 65504. The first step multiplies X by 300, and so X Xᵀ by 90000.
func.func @f(%x: tensor<?x?xf16>) {
  // expected-error @below {{expected coefficients that keep values of f16 below 65504, found a bound of 9.000000e+04 in step 2}}
  %0 = optim.orthogonalize %x coefficients [[300.0, 0.0, 0.0], [1.0, 0.0, 0.0]] eps 1.0e-07 : tensor<?x?xf16>
  return
}

// -----

// A shift is for symmetric products.
func.func @f(%x: tensor<?x4x4xf32>, %o: tensor<?x4x4xf32>) {
  // expected-error @below {{expected a shift of symmetric products alone, found 2.000000e+00}}
  %0 = optim.product %x, %x outs(%o : tensor<?x4x4xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64, shift = 2.0 : f64} : tensor<?x4x4xf32>, tensor<?x4x4xf32> -> tensor<?x4x4xf32>
  return
}

// -----

// A shift is a number of f32.
func.func @f(%x: tensor<?x4x4xf32>, %o: tensor<?x4x4xf32>) {
  // expected-error @below {{expected a shift that is finite in f32, found 1.000000e+40}}
  %0 = optim.product %x, %x outs(%o : tensor<?x4x4xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64, shift = 1.0e+40 : f64, symmetric} : tensor<?x4x4xf32>, tensor<?x4x4xf32> -> tensor<?x4x4xf32>
  return
}

// -----

// Rows have one number each.
func.func @f() {
  // expected-error @below {{expected one value per row, found 'tensor<1x?xf32>'}}
  %0 = optim.position rows : tensor<1x?xf32>
  return
}

// -----

// Columns have one number each.
func.func @f() {
  // expected-error @below {{expected one value per column, found 'tensor<?x?xf32>'}}
  %0 = optim.position columns : tensor<?x?xf32>
  return
}

// -----

// Numbers are drawn for the elements of a block.
func.func @f(%seed: tensor<1x1xf32>, %first: tensor<1x1xi1>) {
  // expected-error @below {{expected a value for each element of a block, or of a matrix of other sizes, found 'tensor<?x1xf32>'}}
  %0 = optim.random normal seed %seed, %seed step %seed, %seed if %first : tensor<1x1xi1> call 0 : tensor<1x1xf32> to tensor<?x1xf32>
  return
}

// -----

// All elements have one seed, one step and one condition.
func.func @f(%seed: tensor<1x1xf32>, %first: tensor<?x?xi1>) {
  // expected-error @below {{expected a seed, a step and a condition of one value, found 'tensor<?x?xi1>'}}
  %0 = optim.random normal seed %seed, %seed step %seed, %seed if %first : tensor<?x?xi1> call 0 : tensor<1x1xf32> to tensor<?x?xf32>
  return
}

// -----

// A call has four counters.
func.func @f(%seed: f32, %first: i1) {
  // expected-error @below {{expected a call from 0 to 1073741823, found 1073741824}}
  %0 = optim.random normal seed %seed, %seed step %seed, %seed if %first : i1 call 1073741824 : f32 to f32
  return
}

// -----

// Numbers of all elements come from one seed.
func.func @f(%seed: tensor<?x1xf32>) {
  // expected-error @below {{expected a seed, a step and a condition of one value, found 'tensor<?x1xf32>'}}
  %0 = optim.random uniform seed %seed, %seed step %seed, %seed call 0 : tensor<?x1xf32> to tensor<?x?xf32>
  return
}

// -----

// Each element is rounded by its own number.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected a result of the source's extents, found 'tensor<?x1xbf16>' of 'tensor<?x?xf32>'}}
  %0 = optim.stochastic %x, %x : tensor<?x?xf32> to tensor<?x1xbf16>
  return
}

// -----

// A transpose exchanges extents.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected a result of the source's type and extents in the other order, found 'tensor<?x?xf32>' of 'tensor<?x?xf32>'}}
  %0 = optim.transpose %x : tensor<?x?xf32> -> tensor<?x?xf32>
  return
}

// -----

// It keeps the type.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected a result of the source's type and extents in the other order, found 'tensor<?x?xbf16, #optim.kind<[cols, rows]>>' of 'tensor<?x?xf32>'}}
  %0 = optim.transpose %x : tensor<?x?xf32> -> tensor<?x?xbf16, #optim.kind<[cols, rows]>>
  return
}

// -----

// A transpose of a block has one source.
func.func @f(%x: tensor<?x4x6xf32>, %o: tensor<?x6x4xf32>) {
  // expected-error @below {{expected one source of a transpose, found 2}}
  %0 = optim.apply #optim.block_transpose %x, %x outs(%o : tensor<?x6x4xf32>) : tensor<?x4x6xf32>, tensor<?x4x6xf32> -> tensor<?x6x4xf32>
  return
}

// -----

// And an out of the other extents.
func.func @f(%x: tensor<?x4x6xf32>, %o: tensor<?x4x6xf32>) {
  // expected-error @below {{expected an out of the source's type, transposed, found 'tensor<4x6xf32>' of 'tensor<4x6xf32>'}}
  %0 = optim.apply #optim.block_transpose %x outs(%o : tensor<?x4x6xf32>) : tensor<?x4x6xf32> -> tensor<?x4x6xf32>
  return
}
