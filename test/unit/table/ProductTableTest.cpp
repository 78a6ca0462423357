//===- ProductTableTest.cpp - Tables of pinned products -------------------===//

#include "frontends/products/ProductTable.h"

#include <gtest/gtest.h>

using namespace stepc;
using namespace stepc::products;

namespace {

const std::string kEntry = R"({"cublaslt": 130002, "chip": "sm_90", "multiprocessors": 132,
  "m": 48, "n": 16, "k": 32, "types": {"lhs": "bf16", "rhs": "bf16", "addend": "bf16", "out": "bf16"},
  "transpose_lhs": false, "transpose_rhs": true, "leading": [32, 32, 16, 16], "alignment": 16,
  "algorithm": 66, "tile": 20, "stages": 35, "split_k": 1, "reduction_scheme": 0, "swizzling": 1,
  "custom_option": 2, "inner_shape": 3, "cluster_shape": 4, "workspace": 4096,
  "microseconds": 3.5, "kernel_microseconds": 4.5})";

std::string tableOf(const std::string &entries) {
  return R"({"format": "stepc-products", "version": 1, "entries": [)" + entries + "]}";
}

/// The errors of a text as "POINTER: MESSAGE", one a line; all have a place in the file.
std::string errorsOf(const std::string &text) {
  manifest::ErrorList errors;
  auto table = readTable(text, "t.json", errors);
  EXPECT_EQ(table.has_value(), errors.empty());
  std::string lines;
  for (const manifest::InputError &error : errors.get()) {
    EXPECT_EQ(error.file, "t.json");
    EXPECT_GT(error.line, 0u);
    lines += error.pointer + ": " + error.message + "\n";
  }
  return lines;
}

/// Of a table of one entry that has `to` in place of `from`.
std::string errorsWith(const std::string &from, const std::string &to) {
  std::string entry = kEntry;
  size_t at = entry.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return errorsOf(tableOf(entry.replace(at, from.size(), to)));
}

TEST(ProductTable, ReadsEveryField) {
  manifest::ErrorList errors;
  auto table = readTable(tableOf(kEntry), "t.json", errors);
  ASSERT_TRUE(table) << errors.str();
  ASSERT_EQ(table->size(), 1u);
  const Entry &entry = table->front();
  EXPECT_EQ(std::tuple(entry.m, entry.n, entry.k), std::tuple(48, 16, 32));
  EXPECT_EQ(entry.lhs, plan::DType::BF16);
  EXPECT_EQ(entry.rhs, plan::DType::BF16);
  EXPECT_EQ(entry.addend, plan::DType::BF16);
  EXPECT_EQ(entry.out, plan::DType::BF16);
  EXPECT_FALSE(entry.transposeLhs);
  EXPECT_TRUE(entry.transposeRhs);
  EXPECT_EQ(entry.leading, (std::vector<int64_t>{32, 32, 16, 16}));
  EXPECT_EQ(entry.algorithm,
            (plan::PinnedAlgorithm{130002, 90, 132, 16, 66, 20, 35, 1, 2, 3, 4, 4096}));
}

TEST(ProductTable, AnEmptyTableIsOne) { EXPECT_EQ(errorsOf(tableOf("")), ""); }

TEST(ProductTable, ErrorsNamePlaceExpectationAndFinding) {
  EXPECT_EQ(errorsOf("{"), ": expected JSON text, found a syntax error: expected object key\n");
  EXPECT_EQ(errorsOf(R"({"format": "stepc-plan", "version": 1})"),
            "/format: expected the format \"stepc-products\", found \"stepc-plan\"\n");
  EXPECT_EQ(errorsOf(R"({"format": "stepc-products", "version": 2})"),
            "/version: expected version 1, the one this stepc reads, found 2\n");
  EXPECT_EQ(errorsOf("[]"), ": expected a table of products, found an array\n");
  EXPECT_EQ(errorsOf("{}"), ": expected the key 'format', found none\n"
                            ": expected the key 'version', found none\n");
  EXPECT_EQ(errorsOf(R"({"format": "stepc-products", "version": 1, "entries": 3})"),
            "/entries: expected an array of entries, found 3\n");
  EXPECT_EQ(errorsOf(R"({"format": "stepc-products", "version": 1})"),
            ": expected the key 'entries', found none\n");
  EXPECT_EQ(errorsOf(tableOf("7")), "/entries/0: expected an entry, found 7\n");
  EXPECT_EQ(errorsWith("\"stages\"", "\"stage\"").substr(0, 52),
            "/entries/0: expected the key 'stages', found none\n/e");
  EXPECT_NE(errorsWith("\"stages\"", "\"stage\"").find("found 'stage', did you mean 'stages'?"),
            std::string::npos);
  EXPECT_EQ(errorsWith("130002", "\"13.0.2\""),
            "/entries/0/cublaslt: expected a version as cublasLtGetVersion() says it, found "
            "\"13.0.2\"\n");
  EXPECT_EQ(errorsWith("\"sm_90\"", "\"sm_90a\""),
            "/entries/0/chip: expected a GPU, as \"sm_90\", found \"sm_90a\"\n");
  EXPECT_EQ(errorsWith("\"sm_90\"", "90"),
            "/entries/0/chip: expected a GPU, as \"sm_90\", found 90\n");
  EXPECT_EQ(errorsWith("132", "0"),
            "/entries/0/multiprocessors: expected a number of multiprocessors, found 0\n");
  EXPECT_EQ(errorsWith("\"m\": 48", "\"m\": 0"),
            "/entries/0/m: expected an extent of at least 1, found 0\n");
  EXPECT_EQ(errorsWith("false", "0"),
            "/entries/0/transpose_lhs: expected true or false, found 0\n");
  EXPECT_EQ(errorsWith("\"alignment\": 16", "\"alignment\": 48"),
            "/entries/0: expected an alignment that is a power of two, found 48\n");
  EXPECT_EQ(errorsWith("\"alignment\": 16", "\"alignment\": 512"),
            "/entries/0/alignment: expected bytes that are a power of two up to 256, found 512\n");
  EXPECT_EQ(errorsWith("\"split_k\": 1", "\"split_k\": 2"),
            "/entries/0/split_k: expected split_k 1, found 2\n");
  EXPECT_EQ(errorsWith("\"reduction_scheme\": 0", "\"reduction_scheme\": 1"),
            "/entries/0/reduction_scheme: expected reduction_scheme 0, found 1\n");
  EXPECT_EQ(errorsWith("\"tile\": 20", "\"tile\": -1"),
            "/entries/0/tile: expected tile, found -1\n");
  EXPECT_EQ(errorsWith("\"cluster_shape\": 4", "\"cluster_shape\": 65536"),
            "/entries/0: expected a cluster shape from 0 to 65535, found 65536\n");
  EXPECT_EQ(errorsWith("4096", "-1"),
            "/entries/0/workspace: expected bytes of workspace, found -1\n");
  EXPECT_EQ(errorsWith("3.5", "0"), "/entries/0/microseconds: expected microseconds, found 0\n");
  EXPECT_EQ(errorsWith("\"lhs\": \"bf16\"", "\"lhs\": \"f64\""),
            "/entries/0/types/lhs: expected f32, bf16 or f16, found \"f64\"\n");
  EXPECT_EQ(errorsWith("\"lhs\": \"bf16\"", "\"lhs\": \"f32\""),
            "/entries/0/types: expected what cuBLASLt multiplies, found types that cuBLASLt does "
            "not multiply: f32 by bf16 plus bf16 to bf16\n");
  EXPECT_EQ(errorsWith(R"("addend": "bf16")", R"("addend": null)"),
            "/entries/0/leading: expected a leading dimension of each of 3 operands, found 4\n");
  EXPECT_EQ(errorsWith("[32, 32, 16, 16]", "[32, 16, 16, 16]"),
            "/entries/0/leading/1: expected at least 32, a row of the operand, found 16\n");
  EXPECT_EQ(errorsOf(tableOf(kEntry + ", " + kEntry)),
            "/entries/1: expected one entry of a product for a library and GPU, found another, "
            "/entries/0\n");
}

TEST(ProductTable, OtherMachinesAlignmentsAndAddendsAreOtherKeys) {
  std::string all = kEntry;
  for (auto [from, to] :
       {std::pair("132", "114"), std::pair("130002", "130100"), std::pair("sm_90", "sm_100"),
        std::pair("\"alignment\": 16", "\"alignment\": 64"), std::pair("\"m\": 48", "\"m\": 49")}) {
    std::string other = kEntry;
    all += ", " + other.replace(other.find(from), std::string(from).size(), to);
  }
  EXPECT_EQ(errorsOf(tableOf(all)), "");
}

} // namespace
