//===- OptimDivide.td - Blocks of matrices, by name ------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMDIVIDE_TD
#define STEPC_DIALECTS_OPTIM_OPTIMDIVIDE_TD

include "dialects/optim/OptimAttrs.td"

def Optim_DivideOp : Optim_Op<"divide", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "says for parameters, by name, which axes form a matrix and how it is divided into blocks";
  let description = [{
    Applies to parameters whose name or alias matches one of `patterns` and none of `except`. With `flatten`,
    the axes from number `flatten` on are the columns of one matrix. The axes before it, after the batch axes,
    are the rows. Along the divided axis a matrix has `repeat` stretches of equal size, and each block has one
    part of every stretch. The sizes of the parts of a stretch are `listed` in order; or as many parts of
    `each` size as fit; or the stretch is `split` into a number of equal parts. Patterns that are also in
    `optional` may match nothing. `optim-divide-parameters` sets the result on the parameters. It replaces the
    flattened axes and blocks that a parameter had.

    ```mlir
    optim.divide patterns ["*.qkv.weight"] except [] into rows listed [512, 128, 128] repeat 8
    optim.divide patterns ["*.q_proj.weight"] optional ["*.q_proj.weight"] except ["h.0.*"]
        into rows each [128] repeat 1
    optim.divide patterns ["*.conv.weight"] except [] flatten 1
    ```
    Constraints: at least one pattern; patterns are well-formed (`dialects/optim/NamePattern.h`); each
    optional pattern is also in `patterns` or `except`. Sizes, numbers of blocks, repeats and axes are 1 or
    more; `each` and `split` have one number. There is a `flatten`, a division or both.
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
