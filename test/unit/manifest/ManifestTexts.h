// Manifests with one thing to look at, and the errors of a text.
#ifndef STEPC_TEST_UNIT_MANIFEST_MANIFESTTEXTS_H
#define STEPC_TEST_UNIT_MANIFEST_MANIFESTTEXTS_H

#include "frontends/manifest/Manifest.h"
#include "gtest/gtest.h"

namespace stepc::manifest {

/// The errors of a text as "POINTER: MESSAGE[ (parameter 'NAME')]", one a line.
inline std::string errorsOf(const std::string &text) {
  ErrorList errors;
  std::optional<Manifest> manifest = readManifest(text, "m.json", errors);
  EXPECT_EQ(manifest.has_value(), errors.empty());
  std::string lines;
  for (InputError &error : errors.get()) {
    EXPECT_EQ(error.file, "m.json");
    EXPECT_GT(error.line, 0u);
    error.file = "";
    error.line = 0;
    lines += error.str().substr(2) + "\n";
  }
  return lines;
}

inline const char *const kMesh = R"({"name": "m", "axes": [{"name": "a", "size": 2},
                                                    {"name": "b", "size": 2}]})";

inline std::string withMesh(const std::string &mesh) {
  return R"({"version": 1, "meshes": [)" + mesh + R"(], "parameters": [
    {"name": "w", "shape": [], "dtype": "f32", "mesh": "m", "placements": []}]})";
}

inline std::string withParameters(const std::string &list) {
  return std::string(R"({"version": 1, "meshes": [)") + kMesh + R"(], "parameters": [)" + list +
         "]}";
}

/// A parameter w; `fields` replaces its part after the name.
inline std::string withParameter(const std::string &fields) {
  return withParameters(R"({"name": "w", )" + fields + "}");
}

inline std::string withShape(const std::string &shape, const std::string &placements,
                             const std::string &more = "") {
  return withParameter(R"("dtype": "f32", "mesh": "m", "shape": )" + shape + R"(, "placements": )" +
                       placements + more);
}

} // namespace stepc::manifest

#endif
