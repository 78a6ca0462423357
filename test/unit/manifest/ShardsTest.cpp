// Models in several safetensors files, with an index and without.
#include "TestFiles.h"
#include "frontends/manifest/MakeManifest.h"
#include "llvm/Support/FileSystem.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace stepc::manifest;
namespace fs = std::filesystem;

namespace {

using Read = SafetensorsFile::Read;

class Shards : public testing::Test {
protected:
  void SetUp() override {
    std::string model = testing::TempDir() + "stepc-shards-XXXXXX";
    folder = mkdtemp(model.data());
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string at(const std::string &name) const { return (folder / name).string(); }
  void put(const std::string &name, const std::string &text) {
    std::ofstream(at(name), std::ios::binary) << text;
  }
  /// A file of f32 tensors of that many elements each.
  void shard(const std::string &name, const std::vector<std::pair<std::string, int>> &tensors) {
    std::string header;
    size_t offset = 0;
    for (const auto &[tensor, elements] : tensors)
      header += (header.empty() ? "{" : ", ") +
                entry(tensor, "F32", "[" + std::to_string(elements) + "]", 4 * elements, &offset);
    std::string bytes = safetensorsBytes(header + "}", offset);
    for (size_t i = 0; i < offset; ++i) // so that each byte of a file is known
      bytes[bytes.size() - offset + i] = char(tensors.front().first[0] + i);
    put(name, bytes);
  }
  std::string index(const std::string &map) {
    put("model.safetensors.index.json",
        R"({"metadata": {"total_size": 1}, "weight_map": )" + map + "}");
    return at("model.safetensors.index.json");
  }
  /// The errors, with the folder's name left out.
  std::string errorsOf(const std::vector<std::string> &paths) {
    ErrorList errors;
    EXPECT_EQ(SafetensorsFile::open(paths, Read::Headers, errors).has_value(), errors.empty());
    std::string text = errors.str(), prefix = folder.string() + "/";
    for (size_t found; (found = text.find(prefix)) != std::string::npos;)
      text.erase(found, prefix.size());
    return text;
  }

  fs::path folder;
};

TEST_F(Shards, AnIndexLeadsToAllTensors) {
  shard("1.safetensors", {{"b", 2}, {"a", 3}});
  shard("2.safetensors", {{"c", 5}});
  std::string path = index(R"({"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors"})");
  ErrorList errors;
  std::optional<SafetensorsFile> file = SafetensorsFile::open(path, Read::Whole, errors);
  ASSERT_TRUE(file) << errors.str();
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->files().vec(),
            (std::vector<std::string>{path, at("1.safetensors"), at("2.safetensors")}));
  ASSERT_EQ(file->tensors().size(), 3u);
  const TensorView *a = file->find("a"), *c = file->find("c");
  ASSERT_TRUE(a && c);
  EXPECT_EQ(a->file, at("1.safetensors"));
  EXPECT_EQ(a->shape, std::vector<int64_t>{3});
  EXPECT_EQ(a->bytes.size(), 12u);
  EXPECT_EQ(a->bytes[0], 'b' + 8);
  EXPECT_EQ(c->bytes[0], 'c');

  std::optional<SafetensorsFile> headers = SafetensorsFile::open(path, Read::Headers, errors);
  ASSERT_TRUE(headers) << errors.str();
  EXPECT_TRUE(headers->find("a")->bytes.empty());
  std::optional<Manifest> made = makeManifest(*headers, {"dp=2", {"*=S(0)"}, {}, {}}, errors);
  ASSERT_TRUE(made) << errors.str();
  EXPECT_EQ(made->parameters.size(), 3u);
  // The shard with the parameter is named.
  EXPECT_FALSE(makeManifest(*headers, {"dp=2", {"a=S(0)", "b=R"}, {}, {}}, errors));
  EXPECT_TRUE(
      llvm::StringRef(errors.str()).starts_with(at("2.safetensors") + ": expected a --place"));
}

TEST_F(Shards, FilesAreGivenOneByOne) {
  shard("1.safetensors", {{"a", 2}});
  shard("2.safetensors", {{"b", 2}, {"a", 2}});
  shard("3.safetensors", {{"c", 2}});
  EXPECT_EQ(errorsOf({at("1.safetensors"), at("3.safetensors")}), "");
  EXPECT_EQ(errorsOf({at("1.safetensors"), at("2.safetensors")}),
            "2.safetensors: expected each tensor in one file, found it in '1.safetensors', too "
            "(parameter 'a')\n");
  fs::create_symlink("1.safetensors", at("link"));
  EXPECT_EQ(errorsOf({at("1.safetensors"), at("link")}),
            "link: expected each file once, found it again\n");
  std::string path = index(R"({"a": "1.safetensors"})");
  EXPECT_EQ(errorsOf({path, at("3.safetensors")}), "");
  EXPECT_EQ(errorsOf({path, at("1.safetensors")}),
            "1.safetensors: expected each file once, found it again\n");
}

TEST_F(Shards, OnlyHeadersAreRead) {
  // 40 GB of data, which a file with a hole has without a byte on the disk.
  int64_t elements = int64_t(10'000'000'000);
  size_t offset = 0;
  std::string header =
      "{" + entry("w", "F32", "[" + std::to_string(elements) + "]", 4 * elements, &offset) + "}";
  put("big.safetensors", safetensorsBytes(header, 0));
  std::error_code code;
  fs::resize_file(at("big.safetensors"), 8 + header.size() + 4 * elements, code);
  if (code)
    GTEST_SKIP() << "the file system has no files of that size";
  EXPECT_EQ(errorsOf({index(R"({"w": "big.safetensors"})")}), "");
  fs::resize_file(at("big.safetensors"), 8 + header.size() + 4 * elements - 1);
  EXPECT_EQ(errorsOf({at("big.safetensors")}),
            "big.safetensors:1:64: /w/data_offsets: expected offsets that ascend within the "
            "39999999999 bytes of data, found [0, 40000000000] (parameter 'w')\n");
}

TEST_F(Shards, WhatAnIndexSaysMustHold) {
  shard("1.safetensors", {{"a", 2}, {"b", 2}});
  std::string json = "model.safetensors.index.json";
  EXPECT_EQ(errorsOf({index(R"({"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors",
                               "d": "2.safetensors"})")}),
            json +
                ": expected the shard '2.safetensors', which has 2 tensors by the index, found no "
                "such file\n");
  EXPECT_EQ(errorsOf({index(R"({"a": "1.safetensors", "c": "1.safetensors"})")}),
            "1.safetensors: expected the tensors that '" + json +
                "' gives to the shard, found another (parameter 'b')\n"
                "1.safetensors: expected a tensor that '" +
                json + "' gives to the shard, found none (parameter 'c')\n");
  shard("2.safetensors", {{"a", 2}});
  EXPECT_EQ(
      errorsOf({index(R"({"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors"})")}),
      "2.safetensors: expected each tensor in one file, found it in '1.safetensors', too "
      "(parameter 'a')\n");
  put("3.safetensors", "PK\x03\x04zip");
  EXPECT_EQ(
      errorsOf({index(R"({"a": "3.safetensors"})")}),
      "3.safetensors: expected a safetensors file, found a zip archive, as torch.save writes\n");
  // An index in an index, a folder, and itself.
  put("4.json", R"({"weight_map": {"a": "1.safetensors"}})");
  EXPECT_EQ(errorsOf({index(R"({"a": "4.json"})")}),
            "4.json: expected a safetensors file, found JSON text without a header length\n");
  fs::create_directory(at("sub"));
  EXPECT_EQ(errorsOf({index(R"({"a": "sub"})")}),
            "sub: expected a safetensors file, found a directory\n");
  EXPECT_EQ(errorsOf({index(R"({"a": ")" + json + "\"}")}),
            json + ": expected each file once, found it again\n");
}

TEST_F(Shards, ShardsStayInTheFolder) {
  fs::create_directory(at("sub"));
  shard("sub/1.safetensors", {{"a", 2}});
  fs::create_symlink(fs::absolute(at("sub/1.safetensors")), at("blob.safetensors"));
  EXPECT_EQ(errorsOf({index(R"({"a": "sub/1.safetensors"})")}), "");
  // As caches of models are: links to blobs elsewhere.
  EXPECT_EQ(errorsOf({index(R"({"a": "blob.safetensors"})")}), "");
  for (std::string out : {at("sub/1.safetensors"), std::string("//x"), std::string("../x"), std::string("sub/../1"),
                          std::string("sub/.."), std::string("..")})
    EXPECT_EQ(errorsOf({index("{\"a\": \"" + out + "\"}")}),
              "model.safetensors.index.json:1:53: /weight_map/a: expected a file in the folder of "
              "the index, found '" +
                  (out == at("sub/1.safetensors") ? "sub/1.safetensors" : out) + "'\n")
        << out;
  EXPECT_EQ(
      errorsOf({index(R"({"a": "x\u0000y"})")}),
      "model.safetensors.index.json:1:53: /weight_map/a: expected a file name in UTF-8 without "
      "control characters, found U+0000 in 'x\\u0000y'\n");
}

TEST_F(Shards, OtherJsonIsNoIndex) {
  auto json = [&](const std::string &text) {
    put("i.json", text);
    return errorsOf({at("i.json")});
  };
  EXPECT_EQ(json(R"({"version": 1, "parameters": []})"),
            "i.json:1:1: expected a safetensors file or the index of one, which has the key "
            "'weight_map', found other JSON text\n");
  EXPECT_EQ(
      json(R"({"weight_map": ["a"]})"),
      "i.json:1:16: /weight_map: expected an object of file names by tensor, found an array\n");
  EXPECT_EQ(json(R"({"weight_map": {}})"),
            "i.json:1:16: /weight_map: expected at least one tensor, found none\n");
  EXPECT_EQ(
      json(R"({"weight_map": {"a": 1, "a": "x"}})"),
      "i.json:1:25: /weight_map/a: expected each key once, found it again in the same object\n");
  EXPECT_EQ(json(R"({"weight_map": {"a": 1, "b": ""}})"),
            "i.json:1:22: /weight_map/a: expected a file name, found 1\n"
            "i.json:1:30: /weight_map/b: expected a file name, found \"\"\n");
  EXPECT_TRUE(llvm::StringRef(json("{\"weight_map\": ")).contains("expected JSON text"));
  // A byte-order mark is no part of it.
  shard("1.safetensors", {{"a", 2}});
  EXPECT_EQ(json("\xEF\xBB\xBF\n{\"weight_map\": {\"a\": \"1.safetensors\"}}"), "");
}

TEST_F(Shards, NothingElseIsOpened) {
  EXPECT_EQ(errorsOf({folder.string()}),
            folder.string() +
                ": expected a safetensors file or the index of one, found a directory\n");
  index("{}");
  std::string found = errorsOf({folder.string()});
  EXPECT_NE(found.find("found a directory, did you mean 'model.safetensors.index.json'?"),
            std::string::npos)
      << found;
  EXPECT_EQ(errorsOf({"/dev/zero"}), "/dev/zero: expected a safetensors file or the index of one, "
                                     "found a pipe or a device\n");
  // Nobody writes into it: to open it would wait for ever.
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(errorsOf({at("pipe")}),
            "pipe: expected a safetensors file or the index of one, found a "
            "pipe or a device\n");
}

TEST_F(Shards, NamesHaveNoControlCharacters) {
  size_t offset = 0;
  put("1.safetensors",
      safetensorsBytes("{" + entry(R"(a\u0000b)", "F32", "[1]", 4, &offset) + ", " +
                           entry(R"(a\u0000c)", "F32", "[1]", 4, &offset) + "}",
                       8));
  EXPECT_EQ(errorsOf({at("1.safetensors")}),
            "1.safetensors:1:14: /a\\u0000b: expected a tensor's name in UTF-8 without control "
            "characters, found U+0000 in 'a\\u0000b' (parameter 'a\\u0000b')\n"
            "1.safetensors:1:82: /a\\u0000c: expected a tensor's name in UTF-8 without control "
            "characters, found U+0000 in 'a\\u0000c' (parameter 'a\\u0000c')\n");
}

} // namespace
