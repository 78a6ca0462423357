//===- Faults.cpp - Faults to plant in a kernel's text ---------------------===//

#include "test/ptx/Faults.h"
#include "test/ptx/Error.h"

#include <algorithm>

namespace stepc::ptx {
namespace {

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

bool has(const std::string &line, std::string_view part) {
  return line.find(part) != std::string::npos;
}

/// The last operand of a statement, without its bracket or semicolon.
std::string lastOperand(const std::string &line) {
  size_t end = line.rfind(';'), begin = line.find_last_of(" \t,", end);
  return line.substr(begin + 1, end - begin - 1);
}

void setLastOperand(std::string &line, const std::string &operand) {
  size_t end = line.rfind(';'), begin = line.find_last_of(" \t,", end);
  line = line.substr(0, begin + 1) + operand + line.substr(end);
}

/// Changes each statement that has `part` by `change`, and gives an empty text where there is none.
template <class Change>
std::string changeAll(const ProductKernel &kernel, std::string_view part, Change change) {
  auto lines = linesOf(kernel.text);
  bool isChanged = false;
  for (std::string &line : lines)
    if (has(line, part)) {
      std::string before = line;
      change(line);
      isChanged |= line != before;
    }
  return isChanged ? joined(lines) : "";
}

/// Sets the number that a register gets where it is defined, or that stands in the statement itself.
bool setNumber(std::vector<std::string> &lines, std::string &use, const std::string &number,
               const std::string &value) {
  std::string operand = lastOperand(use);
  if (operand == number) {
    setLastOperand(use, value);
    return true;
  }
  bool isFound = false;
  for (std::string &line : lines)
    if (has(line, "mov.b") && has(line, operand + ", " + number + ";")) {
      setLastOperand(line, value);
      isFound = true;
    }
  return isFound;
}

std::string releaseEarly(const ProductKernel &kernel) {
  return changeAll(kernel, "wgmma.wait_group", [](std::string &line) {
    if (lastOperand(line) == "1")
      setLastOperand(line, "4");
  });
}

std::string readEarly(const ProductKernel &kernel) {
  return changeAll(kernel, "wgmma.wait_group", [](std::string &line) {
    if (lastOperand(line) == "0")
      setLastOperand(line, "1");
  });
}

std::string expectFewer(const ProductKernel &kernel, bool isAddend) {
  auto lines = linesOf(kernel.text);
  std::vector<size_t> places;
  for (size_t i = 0; i < lines.size(); ++i)
    if (has(lines[i], "expect_tx"))
      places.push_back(i);
  // The operands come first. What comes behind them is the addend.
  if (places.empty() || (isAddend && places.size() < 2))
    return "";
  setLastOperand(lines[isAddend ? places.back() : places.front()], "16384");
  return joined(lines);
}

std::string neverAwaitStaging(const ProductKernel &kernel) {
  return changeAll(kernel, "bulk.wait_group.read",
                   [](std::string &line) { setLastOperand(line, "8"); });
}

/// Removes the fences behind writes of the block's memory, or behind reads of it.
std::string removeFences(const ProductKernel &kernel, bool isBehindWrites) {
  auto lines = linesOf(kernel.text);
  bool isWrite = false, isChanged = false;
  for (std::string &line : lines) {
    if (has(line, "stmatrix") || has(line, "st.shared"))
      isWrite = true;
    else if (has(line, "ld.shared"))
      isWrite = false;
    else if (has(line, "fence.proxy.async") && isWrite == isBehindWrites) {
      line = "";
      isChanged = true;
    }
  }
  return isChanged ? joined(lines) : "";
}

std::string neverTranspose(const ProductKernel &kernel) {
  return changeAll(kernel, "stmatrix", [](std::string &line) {
    if (size_t at = line.find(".trans"); at != std::string::npos)
      line.erase(at, 6);
  });
}

std::string castToOneBlock(const ProductKernel &kernel) {
  auto lines = linesOf(kernel.text);
  bool isChanged = false;
  for (size_t i = 0; i < lines.size(); ++i)
    if (has(lines[i], "multicast"))
      isChanged |= setNumber(lines, lines[i], "3", "1");
  return isChanged ? joined(lines) : "";
}

std::string countFewer(const ProductKernel &kernel) {
  auto lines = linesOf(kernel.text);
  uint32_t count = 8 * kernel.cluster();
  bool isChanged = false;
  for (size_t i = 0; i < lines.size(); ++i)
    if (has(lines[i], "mbarrier.init"))
      isChanged |= setNumber(lines, lines[i], std::to_string(count), std::to_string(count / 4));
  return isChanged ? joined(lines) : "";
}

std::string meetWithHalf(const ProductKernel &kernel) {
  return changeAll(kernel, "bar.sync", [](std::string &line) {
    if (lastOperand(line) == "128")
      setLastOperand(line, "64");
  });
}

std::string releaseUnread(const ProductKernel &kernel) {
  // Nobody waits for the addend's bytes: the wait before the first read of the block's memory goes.
  if (kernel.name.ends_with("_bounded"))
    return ""; // a bounded wait has two instructions
  auto lines = linesOf(kernel.text);
  bool isChanged = false;
  for (size_t i = 0; i < lines.size(); ++i)
    if (has(lines[i], "ld.shared") && i > 0)
      for (size_t back = i;
           back-- > 0 && !has(lines[back], "ld.shared") && !has(lines[back], "wgmma.mma");)
        if (has(lines[back], "mbarrier.try_wait")) {
          // The predicate becomes true at once.
          size_t at = lines[back].find("mbarrier"), name = lines[back].find("b64 ", at) + 4;
          std::string predicate = lines[back].substr(name, lines[back].find(',', name) - name);
          lines[back] = lines[back].substr(0, at) + "setp.eq.s32 " + predicate + ", 0, 0;";
          isChanged = true;
          break;
        }
  return isChanged ? joined(lines) : "";
}

} // namespace

const std::vector<Fault> &faults() {
  static const std::vector<Fault> all = {
      {"a stage released early", releaseEarly},
      {"an accumulator read early", readEarly},
      {"fewer bytes expected of operands",
       [](const ProductKernel &k) { return expectFewer(k, false); }},
      {"fewer bytes expected of the addend",
       [](const ProductKernel &k) { return expectFewer(k, true); }},
      {"staging not awaited", neverAwaitStaging},
      {"no proxy fence before stores",
       [](const ProductKernel &k) { return removeFences(k, true); }},
      {"no proxy fence behind reads of the addend",
       [](const ProductKernel &k) { return removeFences(k, false); }},
      {"a mirror that is not transposed", neverTranspose},
      {"a multicast to one block", castToOneBlock},
      {"kernels before that are not awaited",
       [](const ProductKernel &k) {
         return changeAll(k, "griddepcontrol.wait", [](std::string &line) { line = ""; });
       }},
      {"fewer arrivals at a barrier", countFewer},
      {"fewer threads at a named barrier", meetWithHalf},
      {"an addend that is not awaited", releaseUnread},
  };
  return all;
}

std::vector<std::pair<size_t, std::string>> deletions(const ProductKernel &kernel) {
  auto lines = linesOf(kernel.text);
  std::vector<std::pair<size_t, std::string>> made;
  for (size_t i = 0; i < lines.size(); ++i)
    for (const char *opcode :
         {"mbarrier.arrive", "mbarrier.init", "fence.proxy.async", "fence.mbarrier_init",
          "bar.sync", "barrier.cluster", "wgmma.mma", "wgmma.wait", "wgmma.commit",
          "bulk.commit_group", "bulk.wait_group", "stmatrix", "cp.async.bulk.tensor", "setmaxnreg",
          "griddepcontrol.wait"})
      if (has(lines[i], opcode) && has(lines[i], ";")) {
        std::string line = std::exchange(lines[i], "");
        made.emplace_back(i + 1, joined(lines));
        lines[i] = line;
        break;
      }
  return made;
}

ProductKernel withText(const ProductKernel &kernel, const std::string &text) {
  ProductKernel made = kernel;
  made.text = text;
  made.program = decode(kernelCalled(parse(text), kernel.program.kernel.name));
  return made;
}

} // namespace stepc::ptx
