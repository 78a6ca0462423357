#include "frontends/manifest/Safetensors.h"
#include "TestFiles.h"
#include "gtest/gtest.h"

using namespace stepc::manifest;

namespace {

std::string errorsOf(const std::string &header, size_t dataBytes) {
  ErrorList errors;
  bool good = SafetensorsFile::read(fileOf(header, dataBytes), "f.st", errors).has_value();
  EXPECT_EQ(good, errors.empty());
  std::string lines;
  for (InputError &error : errors.get()) {
    EXPECT_EQ(error.file, "f.st");
    error.file = "";
    error.line = 0;
    lines += error.str().substr(2) + "\n";
  }
  return lines;
}

std::string rawErrors(const std::string &bytes) {
  ErrorList errors;
  EXPECT_FALSE(SafetensorsFile::read(llvm::MemoryBuffer::getMemBufferCopy(bytes), "f.st", errors));
  return errors.str();
}

} // namespace

TEST(Safetensors, WritesAndReads) {
  std::string path = tempPath("roundtrip.safetensors");
  float w[] = {1, 2, 3, 4, 5, 6};
  uint16_t h[] = {7, 8, 9};
  double d[] = {10};
  int64_t n[] = {11, 12};
  std::vector<TensorView> tensors = {
      {"half", TensorType::BF16, "", {3}, bytesOf(h)},
      {"w", TensorType::F32, "", {2, 3}, bytesOf(w)},
      {"d", TensorType::F64, "", {}, bytesOf(d)},
      {"n", TensorType::I64, "", {2}, bytesOf(n)},
      {"none", TensorType::F16, "", {0, 4}, {}},
  };
  ErrorList errors;
  ASSERT_TRUE(writeSafetensors(path, tensors, {{"format", "pt"}}, errors)) << errors.str();
  std::optional<SafetensorsFile> file = SafetensorsFile::open(path, errors);
  ASSERT_TRUE(file) << errors.str();
  EXPECT_EQ(file->tensors().size(), 5u);
  ASSERT_EQ(file->metadata().size(), 1u);
  EXPECT_EQ(file->metadata()[0], (std::pair<std::string, std::string>("format", "pt")));
  for (const TensorView &tensor : tensors) {
    const TensorView *read = file->require(tensor.name, errors);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->type, tensor.type);
    EXPECT_EQ(read->typeName, toString(tensor.type));
    EXPECT_EQ(read->shape, tensor.shape);
    EXPECT_EQ(read->bytes, tensor.bytes);
    if (!read->bytes.empty())
      EXPECT_EQ(reinterpret_cast<uintptr_t>(read->bytes.data()) % byteSize(read->type), 0u);
  }
  // The open file may be replaced.
  ASSERT_TRUE(writeSafetensors(path, file->tensors(), file->metadata(), errors)) << errors.str();
  std::optional<SafetensorsFile> again = SafetensorsFile::open(path, errors);
  ASSERT_TRUE(again) << errors.str();
  EXPECT_EQ(again->find("w")->bytes, bytesOf(w));
}

TEST(Safetensors, EmptyFileOfNoTensors) { EXPECT_EQ(errorsOf("{}", 0), ""); }

TEST(Safetensors, Truncated) {
  EXPECT_EQ(rawErrors(std::string("\x20\0\0\0\0\0\0\0{}", 10)),
            "f.st: expected a safetensors header of at most 2 bytes, found the "
            "length 32\n");
  EXPECT_EQ(rawErrors(std::string(8, '\xFF') + "{"),
            "f.st: expected a safetensors header of at most 1 bytes, found the "
            "length "
            "18446744073709551615\n");
  EXPECT_EQ(errorsOf(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 7),
            "/w/data_offsets: expected offsets that ascend within the 7 bytes of "
            "data, found [0, "
            "8] (parameter 'w')\n");
}

TEST(Safetensors, OtherFilesAreCalledThat) {
  const std::string wanted = "f.st: expected a safetensors file, found ";
  EXPECT_EQ(rawErrors(""), wanted + "an empty file\n");
  EXPECT_EQ(rawErrors("abc"), wanted + "a file that starts with \"abc\"\n");
  EXPECT_EQ(rawErrors(std::string("PK\x03\x04\0\0\x08\x08\0\0", 10)),
            wanted + "a zip archive, as torch.save writes\n");
  EXPECT_EQ(rawErrors("\x80\x02\x8A\nl\xFC\x9C\x46\xF9\x20"),
            wanted + "a pickle, as torch.save wrote before PyTorch 1.6\n");
  EXPECT_EQ(rawErrors("\x93NUMPY\x01"), wanted + "a NumPy file\n");
  EXPECT_EQ(rawErrors("{\"version\": 1}"), wanted + "JSON text without a header length\n");
  EXPECT_EQ(rawErrors(std::string("\x02\0\0\0\0\0\0\0[]", 10)),
            wanted + "a file that starts with \"\\02\\00\\00\\00\\00\\00\\00\\00[]\"\n");
}

TEST(Safetensors, HeaderValues) {
  EXPECT_NE(errorsOf("{", 0).find("expected JSON text, found a syntax error: "), std::string::npos);
  EXPECT_EQ(errorsOf(R"({"w": 1})", 0), "/w: expected a tensor, found 1 (parameter 'w')\n");
  EXPECT_EQ(errorsOf(R"({"w": {}})", 0),
            "/w: expected the key 'data_offsets', found none (parameter 'w')\n"
            "/w: expected the key 'dtype', found none (parameter 'w')\n"
            "/w: expected the key 'shape', found none (parameter 'w')\n");
  EXPECT_EQ(errorsOf(R"({"w": {"dtype": "F33", "shape": [-1], "data_offsets": [0]},
                         "v": {"dtype": "F32", "shape": 2, "data_offsets": [0, "8"], "x": 1}})",
                     8),
            "/w/dtype: expected a dtype of the safetensors format, found \"F33\" "
            "(parameter 'w')\n"
            "/w/shape/0: expected a size from 0 to 2^63 - 1, found -1 (parameter 'w')\n"
            "/w/data_offsets: expected two offsets, found 1 (parameter 'w')\n"
            "/v/shape: expected an array of sizes, found 2 (parameter 'v')\n"
            "/v/data_offsets/1: expected an offset from 0 to 2^63 - 1, found \"8\" "
            "(parameter 'v')\n"
            "/v/x: expected a key of a tensor (dtype, shape, data_offsets), found "
            "'x' (parameter "
            "'v')\n");
  EXPECT_EQ(errorsOf(R"({"__metadata__": {"a": 1}})", 0),
            "/__metadata__/a: expected a string, found 1\n");
  EXPECT_EQ(errorsOf(R"({"__metadata__": []})", 0),
            "/__metadata__: expected an object of strings, found an array\n");
}

TEST(Safetensors, Offsets) {
  auto two = [](const std::string &first, const std::string &second, size_t bytes) {
    return errorsOf(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": )" + first +
                        R"(}, "b": {"dtype": "F16", "shape": [2], "data_offsets": )" + second +
                        "}}",
                    bytes);
  };
  EXPECT_EQ(two("[0, 8]", "[8, 12]", 12), "");
  EXPECT_EQ(two("[4, 12]", "[0, 4]", 12), "");
  EXPECT_EQ(two("[0, 8]", "[6, 10]", 12),
            "/b/data_offsets: expected the tensor's bytes to begin at 8, where "
            "'a' ends, found an "
            "overlap: they begin at 6 (parameter 'b')\n");
  EXPECT_EQ(two("[0, 8]", "[10, 14]", 14),
            "/b/data_offsets: expected the tensor's bytes to begin at 8, where "
            "'a' ends, found a "
            "hole: they begin at 10 (parameter 'b')\n");
  EXPECT_EQ(two("[0, 8]", "[8, 12]", 16),
            "expected tensors that cover the 16 bytes of data, found 12 bytes "
            "covered\n");
  EXPECT_EQ(two("[8, 0]", "[8, 12]", 12),
            "/a/data_offsets: expected offsets that ascend within the 12 bytes "
            "of data, found [8, "
            "0] (parameter 'a')\n");
  EXPECT_EQ(two("[0, 7]", "[7, 11]", 11),
            "/a/data_offsets: expected 8 bytes for 2 elements of F32, found 7 "
            "(parameter 'a')\n");
  EXPECT_EQ(errorsOf(R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296],
                               "data_offsets": [0, 0]}})",
                     0),
            "/a/shape: expected at most 2^59 elements, found a product of sizes "
            "beyond that "
            "(parameter 'a')\n");
}

TEST(Safetensors, UnsupportedTypesAreErrorsWhenUsed) {
  ErrorList errors;
  std::optional<SafetensorsFile> file =
      SafetensorsFile::read(fileOf(R"({"ids": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
                 "q": {"dtype": "F4", "shape": [3], "data_offsets": [3, 5]},
                 "weight": {"dtype": "F16", "shape": [1], "data_offsets": [5, 7]}})",
                                   7),
                            "f.st", errors);
  ASSERT_TRUE(file) << errors.str();
  EXPECT_TRUE(file->require("weight", errors));
  EXPECT_FALSE(file->require("ids", errors));
  EXPECT_FALSE(file->require("wieght", errors));
  EXPECT_EQ(errors.str(), "f.st: expected F64, F32, BF16, F16 or I64, found U8 (parameter 'ids')\n"
                          "f.st: expected a tensor 'wieght', found none, did you mean 'weight'?\n");
}

TEST(Safetensors, WriterRefuses) {
  float w[] = {1, 2};
  ErrorList errors;
  std::vector<TensorView> tensors = {{"w", TensorType::F32, "", {3}, bytesOf(w)},
                                     {"w", TensorType::F32, "", {2}, bytesOf(w)},
                                     {"u", TensorType::Unsupported, "U8", {8}, bytesOf(w)}};
  EXPECT_FALSE(writeSafetensors(tempPath("x.safetensors"), tensors, {}, errors));
  EXPECT_EQ(errors.str(), tempPath("x.safetensors") +
                              ": expected 12 bytes for the shape, found 8 (parameter 'w')\n" +
                              tempPath("x.safetensors") +
                              ": expected each tensor name once, found it again or reserved "
                              "(parameter 'w')\n" +
                              tempPath("x.safetensors") +
                              ": expected F64, F32, BF16, F16 or I64, found another dtype "
                              "(parameter 'u')\n");
  errors = {};
  EXPECT_FALSE(writeSafetensors("/nonexistent/x.safetensors", {}, {}, errors));
  EXPECT_EQ(errors.size(), 1u);
  EXPECT_FALSE(SafetensorsFile::open("/nonexistent/x.safetensors", errors));
  EXPECT_EQ(errors.get()[1].str(), "/nonexistent/x.safetensors: expected a safetensors file or the "
                                   "index of one, but the file cannot be read: no such file or "
                                   "directory");
}
