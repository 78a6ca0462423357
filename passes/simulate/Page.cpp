//===- Page.cpp - A simulated step as one HTML page -------------------------===//

#include "passes/simulate/PageTemplate.h"
#include "passes/simulate/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace stepc;
using namespace stepc::simulate;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;

/// The JSON, the tracks with numbers in place of names, and the bytes under way.
static Object toData(const Report &report) {
  const Result &result = report.result;
  Object data = toObject(report);
  Array tracks, texts, flight;
  Names names(report.plan);
  llvm::StringMap<int64_t> numbers;
  for (const Track &track : result.tracks) {
    Array slices;
    for (const Slice &slice : track.slices) {
      const Named &named = names.of(slice);
      std::string text = named.text + "\n" + llvm::join(named.segments, ", ");
      auto [number, isNew] = numbers.try_emplace(text, int64_t(texts.size()));
      if (isNew)
        texts.push_back(text);
      slices.push_back(Array{int64_t(slice.lane), number->second, slice.begin, slice.end});
    }
    tracks.push_back(Object{{"name", nameOf(result, track)},
                            {"rank", result.world[size_t(track.rank)]},
                            {"ranks", int64_t(track.ranks.size())},
                            {"slices", std::move(slices)}});
  }
  for (const std::vector<double> &parts : result.flight.bytes) {
    Array level;
    for (double bytes : parts)
      level.push_back(int64_t(bytes));
    flight.push_back(std::move(level));
  }
  data["classes"] = result.classes;
  data["tracks"] = std::move(tracks);
  data["names"] = std::move(texts);
  data["flight"] = std::move(flight);
  return data;
}

std::string simulate::toPage(const Report &report) {
  std::string data;
  llvm::raw_string_ostream(data) << llvm::json::Value(toData(report));
  // Names come from manifests. Without '<' no name can end the HTML element that holds the data.
  std::string safe;
  for (char c : data)
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  std::string page;
  auto [head, rest] = StringRef(kPage).split("@DATA@");
  auto [middle, tail] = rest.split("@SCRIPT@");
  page.append(head).append(safe).append(middle).append(kPageScript).append(tail);
  return page;
}
