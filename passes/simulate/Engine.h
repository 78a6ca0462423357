//===- Engine.h - The walk of all ranks, event by event ---------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_ENGINE_H
#define STEPC_PASSES_SIMULATE_ENGINE_H

#include "passes/simulate/Exchanges.h"
#include "passes/simulate/Processor.h"
#include "passes/simulate/Work.h"

#include <deque>

namespace stepc::simulate {

/// What a walk writes down. For ranks without a track only their RankResult is filled.
struct Record {
  std::vector<Track *> trackOf; ///< by rank, null if it has none; empty if no rank has one
  Flight *flight = nullptr;

  Track *track(int64_t rank) const { return trackOf.empty() ? nullptr : trackOf[size_t(rank)]; }
};

/// Carries out one step. Events happen in the order of their times. The order of events of one time depends
/// on the program alone, so that equal questions have equal answers.
class Engine {
public:
  Engine(const plan::Plan &plan, const Options &options, const Topology &topology, const Work &work,
         Exchanges &exchanges, const Record &record);

  /// Fills in the times of `results`. Returns what is wrong; empty if nothing is.
  std::string run(std::vector<RankResult> &results);

private:
  /// The order of events of one time: first what ends, then what begins, then what travels. A sender
  /// therefore knows all receivers that begin an exchange together.
  enum class Kind : int8_t { Done, Resume, Begin, Arrive, Send };
  struct Event {
    double time;
    Kind kind;
    int64_t what;    // by kind: a processor, a rank, a held message or a port
    uint64_t number; // Done: the processor's version; Begin: the exchange
    uint64_t order;
    bool operator>(const Event &other) const {
      if (time != other.time)
        return time > other.time;
      if (kind != other.kind)
        return kind > other.kind;
      return order > other.order;
    }
  };
  struct Rank {
    size_t command = 0;          // the next command
    int phase = 0;               // of a start: copies before, the start itself, copies after
    int64_t awaited = -1;        // the exchange that it waits for
    double waiting = 0;          // the time at which this wait began
    int64_t reached = 0;         // number of starts that its commands have reached
    int64_t begun = 0;           // number of exchanges that it has begun, or whose begin is queued
    std::vector<double> times;   // of starts: when they were reached, then begun
    std::deque<Message> arrived; // messages that its thread must take in (Progress::Waits)
    bool isTaking = false;
    Message taken = {};
    double since = 0; // the time at which its piece of work began
  };

  void push(double time, Kind kind, int64_t what, uint64_t number = 0) {
    events.push({time, kind, what, number, order++});
  }
  void work(int64_t rank, double seconds);
  void reschedule(int64_t processor);
  void walk(int64_t rank);
  bool walkStart(int64_t rank, int64_t exchange);
  void beginNext(int64_t rank);
  void begin(int64_t rank, int64_t exchange);
  void send(int64_t port);
  void come(const Message &message);
  int64_t hold(const Message &message);
  Message release(int64_t at);
  void arrive(const Message &message, double time);
  void finish(int64_t exchange, int64_t rank);
  void resume(int64_t rank);
  void takeIn(int64_t rank);
  void done(int64_t rank);
  void endWait(int64_t rank);
  void note(int64_t rank, Lane lane, int64_t what, double begin, double end);
  void noteFlight(const Message &message, double begin, double end);

  const plan::Plan &plan;
  const Options &options;
  const Topology &topology;
  const Work &times;
  const Record &record;
  Exchanges &exchanges;
  Network network;
  std::vector<Processor> processors;
  std::vector<int64_t> processorOf; // by rank
  std::vector<Rank> ranks;
  std::vector<RankResult> *results = nullptr;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::vector<Message> sends, ready; // used in `begin`, for the rank that begins an exchange
  std::vector<Message> held;         // messages on their way to a thread
  std::vector<int64_t> freed;        // free places in `held`
  uint64_t order = 0;
  double now = 0;
};

} // namespace stepc::simulate

#endif
