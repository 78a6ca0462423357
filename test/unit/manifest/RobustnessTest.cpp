// Valid files with a few bytes changed: the readers answer with a result or
// with errors, never with a crash, and what they accept they can write. Run it
// under AddressSanitizer to see more.

#include "TestFiles.h"
#include "frontends/manifest/MakeManifest.h"
#include "frontends/manifest/Manifest.h"
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>

using namespace stepc::manifest;

namespace {

uint64_t drawSeed() {
  uint64_t seed = std::random_device()();
  if (const char *given = std::getenv("STEPC_SEED"))
    seed = std::strtoull(given, nullptr, 10);
  std::printf("STEPC_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

std::string mutate(std::string text, std::mt19937_64 &random) {
  auto below = [&](size_t n) { return n ? random() % n : 0; };
  const std::string pieces[] = {"[",     "]", "{",    "}", "\"", "\\",   ",",    "-",  "0",
                                "1e999", "9", "null", ":", "S(", "true", "\xFF", "\n", "1048576"};
  for (size_t edits = 1 + below(4); edits-- && !text.empty();) {
    size_t at = below(text.size());
    switch (below(5)) {
    case 0:
      text[at] = char(random());
      break;
    case 1:
      text.erase(at, 1 + below(8));
      break;
    case 2:
      text.insert(at, pieces[below(std::size(pieces))]);
      break;
    case 3: // a digit to another one keeps the text valid and changes what it
            // says
      if (size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos)
        text[digit] = char('0' + below(10));
      break;
    case 4: {
      std::string part = text.substr(at, below(40));
      text.insert(below(text.size()), part);
    }
    }
  }
  return text;
}

} // namespace

TEST(Robustness, MutatedManifests) {
  std::ifstream file(STEPC_SOURCE_DIR "/test/inputs/experts.json");
  std::stringstream stream;
  stream << file.rdbuf();
  std::string valid = stream.str();
  ASSERT_FALSE(valid.empty());
  std::mt19937_64 random(drawSeed());
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = mutate(valid, random);
    ErrorList errors;
    std::optional<Manifest> manifest = readManifest(text, "m.json", errors);
    ASSERT_EQ(manifest.has_value(), errors.empty()) << text;
    if (manifest) {
      ++accepted;
      ErrorList again;
      ASSERT_EQ(readManifest(writeManifest(*manifest), "m.json", again), manifest) << text;
    }
  }
  std::printf("%d of 20000 accepted\n", accepted);
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20000);
}

TEST(Robustness, MutatedSafetensors) {
  size_t bytes = 0;
  std::string header = "{" + entry("param:w", "F32", "[2, 3]", 24, &bytes);
  header += ", " + entry("grad:w", "BF16", "[2, 3]", 12, &bytes);
  header += ", " + entry("state:w:m", "F64", "[]", 8, &bytes) + "}";
  std::string valid = safetensorsBytes(header, bytes);
  std::mt19937_64 random(drawSeed());
  MakeManifestOptions options{"a=2", {"*=S(0)"}, {}, {}};
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = mutate(valid, random);
    if (i % 3) // keep the length right in most cases, to get into the header
      text = safetensorsBytes(mutate(header, random), bytes);
    ErrorList errors;
    std::optional<SafetensorsFile> file =
        SafetensorsFile::read(llvm::MemoryBuffer::getMemBufferCopy(text), "f.st", errors);
    ASSERT_EQ(file.has_value(), errors.empty());
    if (!file)
      continue;
    ++accepted;
    uint64_t sum = 0;
    for (const TensorView &view : file->tensors())
      for (uint8_t byte : view.bytes)
        sum += byte;
    EXPECT_LE(sum, 255u * text.size());
    std::optional<Manifest> manifest = makeManifest(*file, options, errors);
    ASSERT_EQ(manifest.has_value(), errors.empty());
  }
  std::printf("%d of 20000 accepted\n", accepted);
  EXPECT_GT(accepted, 0);
}

TEST(Robustness, TextsThatWouldFillTheMemoryAreRefused) {
  auto errorOf = [](const std::string &text) {
    ErrorList errors;
    EXPECT_FALSE(readManifest(text, "m.json", errors));
    std::string first = errors.str();
    return first.substr(first.find("expected"), first.find('\n') - first.find("expected"));
  };
  auto listOf = [](const std::string &item, size_t count) {
    std::string text = "[" + item;
    for (size_t i = 1; i < count; ++i)
      text += "," + item;
    return text + "]";
  };
  constexpr size_t objects = size_t(1) << 20, values = size_t(1) << 25;
  EXPECT_EQ(errorOf(listOf("{}", objects + 1)),
            "expected JSON that has at most 1048576 objects, found more");
  EXPECT_EQ(errorOf(listOf("1", values + 1)),
            "expected JSON that has at most 33554432 values, found more");
  // As many as may be are looked at.
  EXPECT_EQ(errorOf(listOf("[]", objects + 1)), "expected a manifest, found an array");
}
