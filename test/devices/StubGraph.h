//===- StubGraph.h - Graphs of a driver that is the host ---------------------===//
//
// What stands between the beginning and the end of a capture, on the stream where it began and on those that wait
// for its events. A replay is bound by nothing but the streams and events of the capture.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_DEVICES_STUBGRAPH_H
#define STEPC_TEST_DEVICES_STUBGRAPH_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

/// Something on a stream: work, the record of an event, or that a record is waited for.
struct StubNode {
  const void *stream;
  std::function<bool()> work; // none: a record, or, with the node of one, that it is waited for
  int64_t waitsFor = -1;
};

struct StubGraph {
  const void *origin = nullptr;
  int mode = 0;
  uint64_t number = 0; // of the capture
  std::vector<StubNode> nodes;
  std::map<const void *, int64_t> records; // of events, the last
  std::vector<std::shared_ptr<void>>
      objects; // that live as long as the graph, or what was made of it

  /// Whether the end of the stream where it began comes after all else.
  bool isJoined() const {
    std::map<const void *, int64_t> last;
    std::vector<int64_t> before(nodes.size(), -1);
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto found = last.find(nodes[i].stream);
      before[i] = found == last.end() ? -1 : found->second;
      last[nodes[i].stream] = int64_t(i);
    }
    std::set<int64_t> reached;
    auto reach = [&](auto &self, int64_t node) -> void {
      for (; node >= 0 && reached.insert(node).second; node = before[size_t(node)])
        if (nodes[size_t(node)].waitsFor >= 0)
          self(self, nodes[size_t(node)].waitsFor);
    };
    if (auto found = last.find(origin); found != last.end())
      reach(reach, found->second);
    for (auto &[stream, node] : last)
      if (!reached.count(node))
        return false;
    return true;
  }
};

/// A graph that is ready to run, with streams and events of its own.
struct StubExec {
  StubGraph graph;
  std::map<const void *, std::unique_ptr<char>> lanes, ends; // by the stream of the capture
  std::vector<std::unique_ptr<char>> events;                 // by node
  char begun = 0;

  explicit StubExec(const StubGraph &graph) : graph(graph) {
    for (const StubNode &node : graph.nodes) {
      lanes.try_emplace(node.stream, std::make_unique<char>());
      ends.try_emplace(node.stream, std::make_unique<char>());
      events.push_back(std::make_unique<char>());
    }
  }

  /// All handles that it is known by.
  std::vector<const void *> handles() const {
    std::vector<const void *> all{&begun};
    for (auto *of : {&lanes, &ends})
      for (auto &[stream, handle] : *of)
        all.push_back(handle.get());
    for (auto &event : events)
      all.push_back(event.get());
    return all;
  }

  /// Each piece of work is a copy: it begins anew.
  template <typename Streams> void launch(Streams &streams, const void *stream) const {
    streams.record(&begun, stream);
    for (auto &[captured, lane] : lanes)
      streams.wait(lane.get(), &begun);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const StubNode &node = graph.nodes[i];
      const void *lane = lanes.at(node.stream).get();
      if (node.work)
        streams.enqueue(lane, node.work);
      else if (node.waitsFor >= 0)
        streams.wait(lane, events[size_t(node.waitsFor)].get());
      else
        streams.record(events[i].get(), lane);
    }
    for (auto &[captured, end] : ends) {
      streams.record(end.get(), lanes.at(captured).get());
      streams.wait(stream, end.get());
    }
  }
};

#endif
