//===- Engine.cpp - The walk of all ranks, event by event ------------------===//

#include "passes/simulate/Engine.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace stepc;
using namespace stepc::simulate;

Engine::Engine(const plan::Plan &plan, const Options &options, const Topology &topology,
               const Work &work, Exchanges &exchanges, const Record &record)
    : plan(plan), options(options), topology(topology), times(work), record(record),
      exchanges(exchanges), network(topology), ranks(topology.ranks()) {
  exchanges.reset();
  std::map<int64_t, int64_t> machines;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    auto [machine, isNew] = machines.try_emplace(
        topology.globalRank(int64_t(rank)) / options.ranksPerMachine, processors.size());
    if (isNew)
      processors.emplace_back(options.devices);
    processorOf.push_back(machine->second);
  }
}

std::string Engine::run(std::vector<RankResult> &into) {
  results = &into;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    walk(int64_t(rank));
  while (!events.empty()) {
    Event event = events.top();
    events.pop();
    now = event.time;
    switch (event.kind) {
    case Kind::Done: {
      Processor &processor = processors[size_t(event.what)];
      if (processor.version() != event.number)
        break; // other work came in between, so the end has moved
      int64_t rank = processor.finish(now);
      reschedule(event.what);
      done(rank);
      break;
    }
    case Kind::Resume:
      endWait(event.what);
      break;
    case Kind::Begin:
      begin(event.what, int64_t(event.number));
      break;
    case Kind::Arrive:
      come(release(event.what));
      break;
    case Kind::Send:
      send(event.what);
      break;
    }
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].command < plan.commands.size())
      return "rank " + std::to_string(topology.globalRank(int64_t(rank))) + " waits for exchange " +
             std::to_string(ranks[rank].awaited) + ", whose messages never come";
  return {};
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

void Engine::work(int64_t rank, double seconds) {
  ranks[size_t(rank)].since = now;
  int64_t processor = processorOf[size_t(rank)];
  processors[size_t(processor)].submit(now, rank, seconds);
  reschedule(processor);
}

void Engine::reschedule(int64_t processor) {
  double next = processors[size_t(processor)].next();
  if (std::isfinite(next))
    push(next, Kind::Done, processor, processors[size_t(processor)].version());
}

/// Walks a rank's commands until one of them takes time or has to wait.
void Engine::walk(int64_t index) {
  Rank &rank = ranks[size_t(index)];
  bool isNoted = record.track(index);
  while (rank.command < plan.commands.size()) {
    const plan::Command &command = plan.commands[rank.command];
    if (std::holds_alternative<plan::Start>(command)) {
      if (!walkStart(index, rank.reached - (rank.phase == 2)))
        return;
    } else if (const auto *await = std::get_if<plan::Await>(&command)) {
      rank.awaited = await->start;
      rank.waiting = now;
      ++rank.command;
      if (options.progress == Progress::Waits)
        return takeIn(index);
      if (exchanges.isDone(await->start, index))
        resume(index);
      return;
    } else {
      // If the rank has no track, all commands up to the next start or await are one piece of work.
      double seconds = 0;
      do
        seconds += times.seconds(rank.command++, size_t(index));
      while (!isNoted && rank.command < plan.commands.size() &&
             !std::holds_alternative<plan::Start>(plan.commands[rank.command]) &&
             !std::holds_alternative<plan::Await>(plan.commands[rank.command]));
      if (seconds > 0)
        return work(index, seconds);
    }
  }
  (*results)[size_t(index)].end = now;
}

/// Returns false if a copy takes time. The walk then goes on with the next phase when the copy is done.
bool Engine::walkStart(int64_t index, int64_t exchange) {
  Rank &rank = ranks[size_t(index)];
  Exchanges::Copies copies = exchanges.copies(exchange, index);
  if (rank.phase == 0) {
    rank.phase = 1;
    if (double seconds = times.copySeconds(copies.repeated); seconds > 0) {
      work(index, seconds);
      return false;
    }
  }
  if (rank.phase == 1) {
    rank.phase = 2;
    rank.times.push_back(now);
    ++rank.reached;
    beginNext(index);
    if (double seconds = times.copySeconds(copies.own); seconds > 0) {
      work(index, seconds);
      return false;
    }
  }
  rank.phase = 0;
  ++rank.command;
  return true;
}

/// Ends a rank's piece of work: commands, or taking in a message.
void Engine::done(int64_t index) {
  Rank &rank = ranks[size_t(index)];
  if (rank.isTaking) {
    rank.isTaking = false;
    noteFlight(rank.taken, rank.since, now);
    arrive(rank.taken, now);
    return takeIn(index);
  }
  (*results)[size_t(index)].compute += now - rank.since;
  // While a start's copies run, the walk is still at the start. Otherwise it is already past the command.
  size_t command = rank.command - (rank.phase == 0);
  note(index, Lane::Compute, int64_t(command), rank.since, now);
  walk(index);
}

void Engine::endWait(int64_t index) {
  Rank &rank = ranks[size_t(index)];
  if (rank.isTaking || rank.awaited < 0)
    return;
  if (options.progress == Progress::Waits)
    return takeIn(index);
  (*results)[size_t(index)].exposed += now - rank.waiting;
  note(index, Lane::Wait, rank.awaited, rank.waiting, now);
  rank.awaited = -1;
  walk(index);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Begins the exchanges that a rank's commands have reached. On a stream each waits for the exchange before
/// it.
void Engine::beginNext(int64_t index) {
  Rank &rank = ranks[size_t(index)];
  while (rank.begun < rank.reached) {
    double time = now;
    if (options.progress == Progress::Streams && rank.begun > 0) {
      if (!exchanges.isDone(rank.begun - 1, index))
        return;
      // The exchange before may end later than now. Without messages it ends when it begins.
      time = std::max(
          now, std::max(rank.times[size_t(rank.begun - 1)], exchanges.last(rank.begun - 1, index)));
    }
    push(time, Kind::Begin, index, uint64_t(rank.begun++));
    if (options.progress == Progress::Streams)
      return;
  }
}

void Engine::begin(int64_t index, int64_t exchange) {
  ranks[size_t(index)].times[size_t(exchange)] = now;
  exchanges.sends(exchange, index, sends);
  if (options.progress == Progress::Streams)
    network.load(index, sends);
  exchanges.begin(exchange, index, sends, ready);
  for (const Message &message : ready) {
    if (options.progress == Progress::Waits) {
      push(now + topology.link(topology.levelOf(message.from, message.to)).delay(), Kind::Arrive,
           hold(message));
      continue;
    }
    double at = 0;
    if (int64_t port = network.queue(now, message, at); port >= 0)
      push(at, Kind::Send, port);
  }
  if (exchanges.isDone(exchange, index))
    finish(exchange, index);
}

void Engine::send(int64_t port) {
  Network::Sent sent = network.send(now, port);
  if (sent.next >= 0)
    push(sent.next, Kind::Send, port);
  noteFlight(sent.message, now, sent.arrival);
  arrive(sent.message, sent.arrival);
}

/// Hands a message to its receiver's thread, which has to take it in.
void Engine::come(const Message &message) {
  Rank &rank = ranks[size_t(message.to)];
  rank.arrived.push_back(message);
  if (rank.awaited >= 0)
    endWait(message.to);
}

int64_t Engine::hold(const Message &message) {
  if (freed.empty()) {
    held.push_back(message);
    return int64_t(held.size()) - 1;
  }
  int64_t at = freed.back();
  freed.pop_back();
  held[size_t(at)] = message;
  return at;
}

Message Engine::release(int64_t at) {
  freed.push_back(at);
  return held[size_t(at)];
}

void Engine::arrive(const Message &message, double time) {
  exchanges.arrive(message, time);
  for (int32_t end : {message.from, message.to})
    if (exchanges.isDone(message.exchange, end))
      finish(message.exchange, end);
}

/// Called when all of a rank's messages of an exchange have an arrival time, which may lie ahead. Schedules
/// the rank's next exchange and the end of its wait.
void Engine::finish(int64_t exchange, int64_t index) {
  Rank &rank = ranks[size_t(index)];
  double begun = rank.times[size_t(exchange)];
  note(index, Lane::Messages, exchange, begun, std::max(begun, exchanges.last(exchange, index)));
  if (options.progress == Progress::Streams)
    beginNext(index);
  if (rank.awaited == exchange)
    resume(index);
}

/// Schedules the end of a rank's wait, for the time at which the awaited exchange ends.
void Engine::resume(int64_t index) {
  push(std::max(now, exchanges.last(ranks[size_t(index)].awaited, index)), Kind::Resume, index);
}

/// A rank that awaits takes in the messages that have arrived, of any exchange, until the awaited one is
/// done.
void Engine::takeIn(int64_t index) {
  Rank &rank = ranks[size_t(index)];
  if (exchanges.isDone(rank.awaited, index)) {
    (*results)[size_t(index)].exposed += now - rank.waiting;
    note(index, Lane::Wait, rank.awaited, rank.waiting, now);
    rank.awaited = -1;
    return walk(index);
  }
  if (rank.arrived.empty())
    return;
  rank.taken = rank.arrived.front();
  rank.arrived.pop_front();
  rank.isTaking = true;
  size_t level = topology.levelOf(rank.taken.from, rank.taken.to);
  work(index, topology.link(level).busy(double(rank.taken.bytes)));
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

void Engine::note(int64_t rank, Lane lane, int64_t what, double begin, double end) {
  if (Track *track = record.track(rank); track && end > begin)
    track->slices.push_back({lane, int32_t(what), begin, end});
}

void Engine::noteFlight(const Message &message, double begin, double end) {
  if (!record.flight)
    return;
  auto &parts = record.flight->bytes[topology.levelOf(message.from, message.to)];
  double part = record.flight->part;
  size_t first = std::min(parts.size() - 1, size_t(begin / part));
  size_t last = std::min(parts.size() - 1, size_t(end / part));
  for (size_t at = first; at <= last; ++at) {
    double inside = std::min(end, double(at + 1) * part) - std::max(begin, double(at) * part);
    parts[at] += double(message.bytes) * std::max(0.0, inside) / part;
  }
}
