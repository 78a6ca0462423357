//===- Generator.cpp - Random programs ------------------------------------===//
#include "Helpers.h"

using namespace stepc::lang::test;

std::string Generator::lineEnd() {
  std::string end = chance(15) ? "  // note " + std::to_string(pick(99)) : "";
  end += chance(10) ? "\r\n" : "\n";
  if (chance(10))
    end += "\n\n";
  if (chance(8))
    end += "   // alone\n";
  return end;
}

std::string Generator::number() {
  return oneOf({"0", "1", "2.5", "3e-4", "1E+2", "0.95", "1e-8", "100"});
}

std::string Generator::scalar(unsigned depth) { return chance(25) ? number() : variable(depth); }

std::string Generator::variable(unsigned depth) {
  if (depth == 0 || chance(40))
    return inModel ? oneOf({"lr", "mu", "step"})
                   : oneOf({"lr", "mu", "step", "rows", "cols", "numel"});
  std::string a = variable(depth - 1), b = scalar(depth - 1);
  switch (pick(8)) {
  case 0:
    return "-" + a;
  case 1:
    return "(" + a + space() + ")";
  case 2:
    return "sqrt(" + a + ")";
  case 3:
    return "max(" + a + "," + space() + b + ")";
  case 4:
    return "clamp(" + a + ", " + b + ", " + number() + ",)";
  case 5:
    return "select(" + condition(depth - 1) + ", 1, " + b + ")";
  default:
    return a + space() + oneOf({"+", "-", "*", "/", "^"}) + space() + b;
  }
}

std::string Generator::condition(unsigned depth) {
  std::string compare = scalar(depth ? depth - 1 : 0) + " " +
                        oneOf({"<", "<=", ">", ">=", "==", "!="}) + " " +
                        scalar(depth ? depth - 1 : 0);
  if (chance(10))
    return "finite(" + scalar(depth ? depth - 1 : 0) + ")";
  if (depth == 0 || chance(50))
    return "(" + compare + ")";
  switch (pick(3)) {
  case 0:
    return "(not " + condition(depth - 1) + ")";
  case 1:
    return "(" + compare + " and " + condition(depth - 1) + ")";
  default:
    return "(" + condition(depth - 1) + " or " + compare + ")";
  }
}

std::string Generator::tensor(unsigned depth) {
  if (depth == 0 || chance(25))
    return tensors[pick(static_cast<unsigned>(tensors.size()))];
  std::string a = tensor(depth - 1), b = tensor(depth - 1);
  if (!inModel && chance(4))
    return a + " * " + oneOf({"row", "col", "uniform()"});
  if (functions && chance(8))
    return "f" + std::to_string(pick(functions)) + "(" + a + "," + space() + b + ")";
  if (!modelValues.empty() && !inModel && chance(10))
    return a + " * model." + modelValues[pick(unsigned(modelValues.size()))];
  switch (pick(12)) {
  case 0:
    return oneOf({"abs", "sign", "exp", "sqrt", "rsqrt", "log", "floor"}) + "(" + a + ")";
  case 1:
    return "lerp(" + a + ", " + b + ", " + scalar(depth - 1) + ")";
  case 2:
    return "momentum(" + a + ", " + b + ", mu)";
  case 3:
    return a + " * " + oneOf({"mean", "sum", "rms", "norm", "max"}) + "(" + b +
           (inModel ? "" : ", over" + space() + "= " + oneOf({"columns", "rows"})) + ")";
  case 4:
    return "select(" + oneOf({"", "not "}) +
           (chance(30) ? "finite(" + a + ") " : "(" + a + " > " + b + ") ") +
           oneOf({"and ", "or "}) + condition(depth - 1) + ", " + a + ",\n  " + b + ")";
  case 5:
    if (inModel)
      return "-" + a;
    return "orthogonalize(" + a + ", coefficients = " +
           oneOf({"simple", "quintic, steps = 5", "[(1, -2.5e0, 3),(4, 5,-6)]",
                  "polar_express, safety = 1.01", "cubic5, eps = 1e-6"}) +
           ", precision=" +
           oneOf({"f32", "bf16", "f16", "bf16, form = standard", "f16, form = gram",
                  "bf16,form=auto, restarts = [1]", "f32, restarts=[ 1,],form = gram"}) +
           ")";
  case 6:
    return "cast(" + a + ", " + oneOf({"f32", "bf16", "f16"}) + ")";
  case 7:
    return "(" + a + " - " + b + ")";
  case 8:
    return inModel || chance(50) ? "decay(" + a + ", lr, mu)"
                                 : "(cast(" + a + ", f32)" + space() + "@" + space() +
                                       "transpose(cast(" + b + ", f32)) @ grad)";
  case 9: // In parentheses, so that no further operator makes the number another.
    return "(" + a + space() + oneOf({"+", "-", "*", "/", "^"}) + space() + number() + ")";
  default:
    return a + space() + oneOf({"+", "-", "*", "/", "^"}) + space() +
           (chance(50) ? "(" + variable(depth - 1) + ")" : b);
  }
}

std::string Generator::elementwise(unsigned depth, const std::vector<std::string> &of) {
  if (depth == 0 || chance(20))
    return of[pick(unsigned(of.size()))];
  std::string a = elementwise(depth - 1, of), b = elementwise(depth - 1, of);
  switch (pick(6)) {
  case 0:
    return "abs(" + a + ")";
  case 1:
    return "lerp(" + a + "," + space() + b + ", 0.5)";
  case 2:
    return "select(" + a + " > " + b + ", -" + a + ", " + b + ")";
  case 3:
    return "(" + a + space() + oneOf({"*", "/", "^"}) + space() + oneOf({"2", "0.5", "3"}) + ")";
  case 4:
    if (functions)
      return "f" + std::to_string(pick(functions)) + "(" + a + ", " + b + ")";
    [[fallthrough]];
  default:
    return "(" + a + space() + oneOf({"+", "-", "*"}) + space() + b + ")";
  }
}

std::string Generator::function(unsigned index) {
  std::string text = "def f" + std::to_string(index) + "(a,b" + (chance(20) ? "," : "") + ")";
  if (chance(40))
    return text + " =" + space() + "a + " + elementwise(3, {"a", "b"}) + lineEnd();
  text += space() + "{" + lineEnd() + "let z = 2 *" + space() + elementwise(2, {"a"}) + lineEnd();
  if (chance(70)) {
    bool hasList = chance(50);
    text += "repeat " +
            (hasList ? "(p,q) in [(1, -2),(0.5," + space() + "3)]" : oneOf({"1", "3"})) + space() +
            "{" + lineEnd();
    text += "let w = " + elementwise(2, {"a", "z"}) + lineEnd();
    text += "z = " + std::string(hasList ? "p * w +q *" : "0.5 * w + ") + space() +
            elementwise(2, {"z", "w", "b"}) + lineEnd() + "}" + lineEnd();
  }
  return text + "return" + space() + " " + oneOf({"-", "2 * ", ""}) + "(z + " +
         elementwise(2, {"a", "b", "z"}) + ")" + lineEnd() + "}" + lineEnd();
}

std::string Generator::model() {
  inModel = true;
  tensors = {"param", "grad"};
  modelValues = {"lr", "mu"};
  std::string text =
      "model" + space() + "(lr, mu =" + space() + number() + ")" + space() + "{" + lineEnd();
  std::vector<std::string> states;
  while (chance(30)) {
    states.push_back("h" + std::to_string(names++));
    text += "state " + states.back() + space() + ":f32" + oneOf({"", "[]", " [ ] = 2", "=-1e-3"}) +
            lineEnd();
    modelValues.push_back(states.back());
  }
  for (unsigned i = 0, count = pick(5); i < count; ++i) {
    std::string name = "w" + std::to_string(names++), value;
    if (chance(50)) {
      value = chance(50) ? variable(2) : "norm(" + tensor(2) + ")";
      modelValues.push_back(name);
    } else {
      value = tensor(3);
      tensors.push_back(name);
    }
    text += space() + "let " + name + space() + "= " + value + lineEnd();
  }
  auto assign = [&] {
    for (const std::string &state : states)
      if (chance(50))
        text += state + " = " + (chance(50) ? variable(2) : "max(" + tensor(1) + ") + " + state) +
                lineEnd();
  };
  assign();
  while (chance(30))
    text += "skip" + space() + " when " + oneOf({"", "not "}) +
            (chance(50) ? "finite(norm(" + tensor(1) + "))" : condition(2)) + lineEnd();
  assign();
  while (chance(20))
    text += "metric" + space() + " n" + std::to_string(names++) + " = " +
            (chance(50) ? variable(2) : "rms(" + tensor(1) + ")") + lineEnd();
  if (chance(70))
    text += "grad =" + space() + tensor(3) + lineEnd();
  inModel = false;
  return text + "}" + lineEnd();
}

std::string Generator::optimizer(unsigned index) {
  tensors = {"param", "grad"};
  std::string text = "optimizer R" + std::to_string(index) + space() + "(lr, mu =" + space() +
                     (chance(30) ? "-" : "") + number() + (chance(30) ? "," : "") + ")" + space() +
                     (chance(20) ? " wide" + space() : "") + "{" + lineEnd();
  unsigned states = pick(4);
  bool hasMaster = chance(30);
  if (hasMaster)
    text += "master:f32" + lineEnd();
  for (unsigned i = 0; i < states; ++i) {
    std::string name = "s" + std::to_string(i);
    text +=
        "state " + name + space() + ":" + space() + oneOf({"f32", "bf16", "f16"}) +
        (chance(30)
             ? "=" + space() +
                   oneOf({"0", "1", "2.5", "-0.95", "1E+2", "param", "1/ 4", "identity", "normal"})
             : "") +
        lineEnd();
    tensors.push_back(name);
  }
  if (chance(20)) {
    text += "input" + space() + " x0" + space() + ":" + oneOf({"f32", "bf16"}) +
            (chance(50) ? "=" + space() + oneOf({"0", "-1/ 3"}) : "") + lineEnd();
    tensors.push_back("x0");
  }
  for (unsigned i = 0, count = 1 + pick(6); i < count; ++i) {
    if (states && chance(50)) {
      text += "s" + std::to_string(pick(states)) + " = " + tensor(3) + lineEnd();
      continue;
    }
    std::string name = "t" + std::to_string(names++);
    text += space() + "let " + name + space() + "=" + tensor(3) + lineEnd();
    if (chance(20)) // a sum is f32, whatever the state that it is of
      text += "let u" + name + " = " + name + " + grad" + lineEnd() + "repeat" + space() + " " +
              oneOf({"2", "k in[1, 2,]"}) + "{" + lineEnd() + "u" + name + " = 0.5 * u" + name +
              " -" + space() + tensor(2) + lineEnd() + "}" + lineEnd();
    tensors.push_back(name);
  }
  while (chance(20))
    text += space() + "metric n" + std::to_string(names++) + space() + "=" +
            (chance(50) ? variable(2) : "norm(" + tensor(2) + ")") + lineEnd();
  std::string result = "param - lr *" + tensor(3);
  if (!hasMaster && chance(20))
    result = "stochastic(" + result + ")";
  return text + "param = " + result + lineEnd() + "}" + lineEnd();
}

std::string Generator::route(unsigned rules) {
  std::string text = "route {" + lineEnd();
  for (unsigned i = 0; i < rules; ++i) {
    text += "R" + std::to_string(i) + "(lr=" + number() +
            oneOf({"", "", "/ 3", " *(2-4.5 )", "^2", "+sqrt( 2)"});
    if (chance(40))
      text += ",missing_grad = " + oneOf({"error", "skip", "zero"});
    text += ")" + (chance(30) ? space() + " as route" + std::to_string(i) : "") + " for ";
    std::string patterns = oneOf({"matrix \"a.*\"", "\"b?\", \"[!c]*\"", "\"layers.*.weight\""});
    if (chance(30))
      patterns += space() + "if" + space() + " present";
    std::string sizes = "matrix" + space() + (chance(30) ? " \"h.*\"" : "") + space() + " where" +
                        oneOf({" ", "("}) + "rows <";
    bool isOpen = sizes.find('(') != std::string::npos;
    sizes += space() + number() + " or -cols > -numel/ 2" + (isOpen ? ")" : "");
    text += i + 1 == rules ? "rest" : chance(25) ? "matrix" : chance(30) ? sizes : patterns;
    if (chance(40)) {
      text += " except \"*embed*\"";
      for (unsigned j = 0, count = pick(8); j < count; ++j)
        text += "," + space() + "\"blocks.*.attention.q_proj.weight\"";
    }
    text += lineEnd();
  }
  return text + "}" + lineEnd();
}

std::string Generator::blocks() {
  std::string text =
      "blocks" + space() + "\"*.qkv\"" + (chance(30) ? "," + space() + "\"h.?.w\"" : "");
  if (chance(30))
    text += space() + "if" + space() + " present";
  if (chance(30))
    text += space() + " except \"*.bias\"";
  if (chance(30)) {
    text += space() + " flatten" + space() + " " + std::to_string(1 + pick(3));
    if (chance(50))
      return text + lineEnd();
  }
  if (chance(40))
    text += space() + " repeat" + space() + " " + std::to_string(1 + pick(9));
  return text + " " + oneOf({"rows", "columns"}) + space() + " " +
         oneOf({"each 128", "split  2", "512, 128,128", "1e2", "7"}) + lineEnd();
}

std::string Generator::file() {
  std::string text = chance(30) ? "// header\n\n" : "";
  modelValues.clear();
  functions = 0;
  if (chance(20))
    text += "import" + space() + " \"stepc/linalg.optim\"" + lineEnd();
  while (functions < 3 && chance(40)) {
    text += function(functions);
    ++functions;
  }
  std::string declared = chance(40) ? model() : "";
  bool isFirst = chance(50);
  text += isFirst ? declared : "";
  unsigned rules = 1 + pick(3);
  for (unsigned i = 0; i < rules; ++i) {
    text += optimizer(i);
    while (chance(30))
      text += "\n" + blocks();
  }
  text += isFirst ? "" : declared;
  return text + (chance(30) ? "\n" + blocks() : "") + route(rules);
}
