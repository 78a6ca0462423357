//===- OptimDivide.td - Blocks of matrices, by name ------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMDIVIDE_TD
#define STEPC_DIALECTS_OPTIM_OPTIMDIVIDE_TD

include "dialects/optim/OptimAttrs.td"

def Optim_DivideOp : Optim_Op<"divide", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "what the matrices of parameters are, and how they are divided into blocks, by name";
  let description = [{
    Holds for parameters of which the name or an alias matches one of `patterns` and none of `except`. With
    `flatten`, the axes from it on are the columns of one matrix, and those before it, behind the batch axes,
    its rows. Matrices are `repeat` stretches of equal size along the axis, and each block has its part of
    every stretch. The parts are `listed` sizes that follow one another, as many as fit of `each` size, or
    `split` into a number of equal size. Patterns that are also in `optional` may match nothing.
    `optim-divide-parameters` brings it to the parameters, and it replaces what they have.

    ```mlir
    optim.divide patterns ["*.qkv.weight"] except [] into rows listed [512, 128, 128] repeat 8
    optim.divide patterns ["*.q_proj.weight"] optional ["*.q_proj.weight"] except ["h.0.*"]
        into rows each [128] repeat 1
    optim.divide patterns ["*.conv.weight"] except [] flatten 1
    ```
    Constraints: patterns are well-formed (`dialects/optim/NamePattern.h`), and each optional one is among
    them. Sizes, numbers of blocks, repeats and axes are 1 or more; `each` and `split` have one number. It
    says something.
  }];
  let arguments = (ins StrArrayAttr:$patterns, OptionalAttr<StrArrayAttr>:$optional, StrArrayAttr:$except,
                       OptionalAttr<I64Attr>:$flatten,
                       DefaultValuedAttr<Optim_BlockAxis, "plan::Division::Rows">:$axis,
                       DefaultValuedAttr<Optim_BlockSizes, "plan::BlockSizes::Listed">:$sizes,
                       OptionalAttr<DenseI64ArrayAttr>:$numbers, DefaultValuedAttr<I64Attr, "1">:$repeat);
  let assemblyFormat = [{
    `patterns` $patterns (`optional` $optional^)? `except` $except (`flatten` $flatten^)?
    (`into` custom<Word>($axis) custom<Word>($sizes) $numbers^ `repeat` $repeat)? attr-dict
  }];
  let hasVerifier = 1;
}

#endif
