//===- OptimDivide.td - Blocks of matrices, by name ------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMDIVIDE_TD
#define STEPC_DIALECTS_OPTIM_OPTIMDIVIDE_TD

include "dialects/optim/OptimAttrs.td"

def Optim_DivideOp : Optim_Op<"divide", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "how the matrices of parameters are divided into blocks, by name";
  let description = [{
    Matrices of parameters that match one of `patterns` (their name or an alias), and none of `except`, are `repeat` stretches of
    equal size along the axis, and each block has its part of every stretch. The parts are `listed` sizes that follow one
    another, as many as fit of `each` size, or `split`, so many of equal size. Patterns that are also in `optional` may match nothing.
    `optim-divide-parameters` brings it to the parameters, where it holds instead of blocks that they have.

    ```mlir
    optim.divide patterns ["*.qkv.weight"] except [] rows listed [512, 128, 128] repeat 8
    optim.divide patterns ["*.q_proj.weight"] optional ["*.q_proj.weight"] except ["h.0.*"] rows each [128] repeat 1
    ```
    Constraints: patterns are well-formed (`dialects/optim/NamePattern.h`), each optional one among them; sizes, numbers of blocks
    and repeats of 1 or more; one number of `each` and `split`.
  }];
  let arguments = (ins StrArrayAttr:$patterns, OptionalAttr<StrArrayAttr>:$optional, StrArrayAttr:$except,
                       Optim_BlockAxis:$axis, Optim_BlockSizes:$sizes, DenseI64ArrayAttr:$numbers,
                       I64Attr:$repeat);
  let assemblyFormat = [{
    `patterns` $patterns (`optional` $optional^)? `except` $except $axis $sizes $numbers `repeat` $repeat attr-dict
  }];
  let hasVerifier = 1;
}

#endif
