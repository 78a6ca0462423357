//===- HintsTest.cpp - What people bring from other languages --------------===//
#include "Helpers.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// The messages about syntax, without what analysis adds.
std::vector<std::string> syntaxErrors(std::string text) {
  Result result;
  result.source = std::make_unique<Source>("t.optim", std::move(text));
  result.file = parse(*result.source, result.diagnostics);
  return result.messages();
}

struct Case {
  const char *text;
  const char *message;
  std::string hint;
};

/// One message each, with this hint; "" for none. Notes are others' matter.
void expectHints(llvm::ArrayRef<Case> cases, bool isSyntax) {
  for (const Case &c : cases) {
    std::vector<std::string> messages = isSyntax ? syntaxErrors(rule(c.text)) : messagesIn(c.text);
    std::erase_if(messages, [](const std::string &line) {
      return line.find(": note: ") != std::string::npos;
    });
    std::vector<std::string> wanted = {c.message};
    if (!c.hint.empty())
      wanted.push_back("  hint: " + c.hint);
    EXPECT_EQ(messages, wanted) << c.text;
  }
}

TEST(Hints, Syntax) {
  const std::string select = "a choice is written 'select(condition, value, otherwise)'",
                    equality = "equality is written 'a == b'";
  expectHints(
      {
          {"m += grad", "2:3: error: expected '=' after 'm', found '+'", "write 'm = m + ...'"},
          {"param -= lr * grad", "2:7: error: expected '=' after 'param', found '-'",
           "write 'param = param - ...'"},
          {"sate m : f32", "2:6: error: expected '=' after 'sate', found 'm'",
           "did you mean 'state'?"},
          {"var x = 1", "2:5: error: expected '=' after 'var', found 'x'",
           "a value is named by 'let x = ...'"},
          {"m == grad", "2:3: error: expected '=' after 'm', found '=='", "assign with one '='"},
          {"let x = lr > 0 ? 1", "2:16: error: unexpected character '?'", select},
          {"return grad", "2:8: error: expected '=' after 'return', found 'grad'",
           "a step ends with 'param = ...'"},
          {"let x = select(step = 1, 2)",
           "2:26: error: expected arguments by position before those by name",
           "equality is written 'step == ...'"},
          {"let x = (lr = 1)", "2:13: error: expected ')', found '='", equality},
          {"let x = lr = 1", "2:12: error: expected an operator or the end of the line, found '='",
           equality},
          {"let x = select(lr = 1, 2)",
           "2:24: error: expected arguments by position before those by name",
           "equality is written 'lr == ...'"},
          {"let x = lr === 1", "2:14: error: expected a value, found '='", equality},
          {"let x = lr <> 1", "2:13: error: expected a value, found '>'",
           "'not equal' is written 'a != b'"},
          {"let x = lr && lr", "2:12: error: unexpected character '&&'", "write 'a and b'"},
          {"let x = lr || lr", "2:12: error: unexpected character '||'", "write 'a or b'"},
          {"let x = !lr", "2:9: error: unexpected character '!'", "write 'not a'"},
          {"let x = step % 10", "2:14: error: unexpected character '%'",
           "every k steps is 'step == k * ((step / k + 6e15) - 6e15)'"},
          {"let x = torch.sqrt(lr)", "2:14: error: unexpected character '.'",
           "functions have no prefix: 'sqrt(x)'"},
          {"let x = grad.sqrt()", "2:13: error: unexpected character '.'",
           "functions have no prefix: 'sqrt(x)'"},
          {"let x = param.rows", "2:14: error: unexpected character '.'",
           "write 'rows' alone: it is the parameter's"},
          {"let x = param.shape", "2:14: error: unexpected character '.'",
           "the parameter's sizes are 'rows', 'cols' and 'numel'"},
          {"let x = grad.T", "2:13: error: unexpected character '.'",
           "a transpose is 'transpose(x)', which is not supported yet"},
          {"state m : float32", "2:11: error: expected f32, bf16 or f16, found 'float32'",
           "did you mean 'f32'?"},
          {"state m : fp32", "2:11: error: expected f32, bf16 or f16, found 'fp32'",
           "did you mean 'f32'?"},
          {"state m : f32[row]", "2:15: error: expected 'rows', 'cols' or ']', found 'row'",
           "did you mean 'rows'?"},
      },
      /*isSyntax=*/true);
}

TEST(Hints, ChoicesOfOtherLanguages) {
  // Wherever the word stands, the one message about it names the function.
  for (const char *body :
       {"if (grad > 0) {\n  let x = 1\n}", "let x = if(lr > 0, 1, 2)", "let x = 1 if lr > 0 else 2",
        "let x = (1 if lr > 0 else 2)", "let x = abs(1 if lr > 0 else 2)"})
    EXPECT_THAT(messagesIn(body), testing::Contains(testing::HasSubstr("'select(condition, ")))
        << body;
}

TEST(Hints, OneRunReportsAllUpdates) {
  EXPECT_THAT(syntaxErrors(rule("m += grad\nparam -= lr * grad\nlet x = )")),
              ElementsAre("2:3: error: expected '=' after 'm', found '+'",
                          "  hint: write 'm = m + ...'",
                          "3:7: error: expected '=' after 'param', found '-'",
                          "  hint: write 'param = param - ...'",
                          "4:9: error: expected a value, found ')'"));
  EXPECT_THAT(syntaxErrors("route {\n  A() for matrixx\n  A for rest\n}\n"),
              ElementsAre("2:11: error: expected 'matrix', 'rest' or a pattern in quotes, found "
                          "'matrixx'",
                          "  hint: did you mean 'matrix'?", "3:5: error: expected '(', found 'for'",
                          "  hint: values of hyperparameters stand in parentheses: 'A(...) for'"));
}

TEST(Hints, BlockCommentsAreOneError) {
  // Whatever the comment says, what follows it is read.
  EXPECT_THAT(syntaxErrors(rule("/* a ' note\n  of # lines */\nlet x = )")),
              ElementsAre("2:1: error: expected a comment that starts with '//', found '/*'",
                          "  hint: comments go from '//' to the end of the line",
                          "4:9: error: expected a value, found ')'"));
  EXPECT_THAT(syntaxErrors("/* not closed"),
              ElementsAre("1:1: error: expected a comment that starts with '//', found '/*'",
                          "  hint: comments go from '//' to the end of the line"));
}

TEST(Hints, ByteOrderMarkIsSkipped) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_THAT(check(mark + rule("")).messages(), IsEmpty());
  // Places are those of the text behind it, and elsewhere it is no space.
  EXPECT_THAT(syntaxErrors(mark + "optimizer 3"),
              ElementsAre("1:11: error: expected the optimizer's name, found '3'"));
  EXPECT_THAT(syntaxErrors(rule("let x = " + mark)),
              ElementsAre("2:9: error: unexpected character '" + mark + "'"));
}

TEST(Hints, Names) {
  expectHints(
      {
          // Near by letters, and far in meaning.
          {"let x = cos(lr)", "2:9: error: unknown function 'cos'", ""},
          {"let x = sin(lr)", "2:9: error: unknown function 'sin'", ""},
          {"let x = floor(lr)", "2:9: error: unknown function 'floor'", ""},
          {"let x = frob(lr)", "2:9: error: unknown function 'frob'", ""},
          {"let x = nrom(grad)", "2:9: error: unknown function 'nrom'", "did you mean 'norm'?"},
          {"let x = clip(lr, 0, 1)", "2:9: error: unknown function 'clip'",
           "did you mean 'clamp'?"},
          {"let x = log2(lr)", "2:9: error: unknown function 'log2'",
           "it is written 'log(x) / log(2)'"},
          {"let x = square(lr)", "2:9: error: unknown function 'square'",
           "a square is written 'x ^ 2'"},
          {"let x = gradient", "2:9: error: unknown name 'gradient'", "did you mean 'grad'?"},
          {"let x = row", "2:9: error: unknown name 'row'", "did you mean 'rows'?"},
          {"params = grad", "2:1: error: unknown state 'params'", "did you mean 'param'?"},
          // What is declared later cannot be meant.
          {"let x = limi\nlet limit = x", "2:9: error: unknown name 'limi'", ""},
          {"let x = sqrt(lr = 1)", "2:14: error: unknown argument 'lr' of 'sqrt'",
           "equality is written 'lr == ...'"},
          {"let x = sqrt(step = 1)", "2:14: error: unknown argument 'step' of 'sqrt'",
           "equality is written 'step == ...'"},
          {"let x = orthogonalize(grad, step = 5)",
           "2:29: error: unknown argument 'step' of 'orthogonalize'", "did you mean 'steps'?"},
          {"let x = orthogonalize(grad, iterations = 5)",
           "2:29: error: unknown argument 'iterations' of 'orthogonalize'",
           "it takes steps, coefficients, precision, eps or safety"},
          {"let x = cast(grad, bfloat16)",
           "2:20: error: expected f32, bf16 or f16, found 'bfloat16'", "did you mean 'bf16'?"},
          {"let x = orthogonalize(grad, precision = fp16)",
           "2:41: error: expected f32, bf16 or f16, found 'fp16'", "did you mean 'f16'?"},
          {"let x = norm(grad, over = row)",
           "2:27: error: expected 'columns' or 'rows', found 'row'",
           "did you mean 'rows' (one value per column)?"},
      },
      /*isSyntax=*/false);
}

TEST(Hints, ShapesOfStates) {
  const std::string reduction = "a reduction of a full tensor with ",
                    rows = reduction + "'over = columns' gives one value per row",
                    cols = reduction + "'over = rows' gives one value per column";
  expectHints(
      {
          {"state v : f32[rows]\nv = grad * grad",
           "3:5: error: expected one value per row for 'v', found a tensor shaped like the "
           "parameter",
           rows},
          {"state v : f32[rows]\nv = norm(grad, over = rows)",
           "3:5: error: expected one value per row for 'v', found one value per column", rows},
          {"state v : bf16[cols]\nv = grad * grad",
           "3:5: error: expected one value per column for 'v', found a tensor shaped like the "
           "parameter",
           cols},
          {"state v : f32[]\nv = grad * grad",
           "3:5: error: expected one value of the whole parameter for 'v', found a tensor shaped "
           "like the parameter",
           "a reduction such as 'mean(x)' gives one value"},
          {"state m : bf16\nm = norm(grad, over = rows)",
           "3:5: error: expected a tensor shaped like the parameter for 'm', found one value per "
           "column",
           "a state that is smaller is declared so: 'bf16[cols]'"},
      },
      /*isSyntax=*/false);
}

} // namespace
