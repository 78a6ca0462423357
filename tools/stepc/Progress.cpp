//===- Progress.cpp - What a long command is doing -------------------------===//

#include "tools/stepc/Pipeline.h"

#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <condition_variable>
#include <thread>

using namespace stepc::driver;
using Clock = std::chrono::steady_clock;

struct Progress::State {
  std::string what, stage, shown;
  Clock::time_point begin = Clock::now();
  bool terminal = llvm::sys::Process::StandardErrIsDisplayed();
  bool done = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread printer;

  void print() {
    if (stage.empty() || stage == shown)
      return;
    shown = stage;
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    // On a terminal the next line replaces this one.
    llvm::errs() << (terminal ? "\r\033[K" : "") << what << ": " << stage
                 << llvm::format(" (%.1f s)", seconds) << (terminal ? "" : "\n");
  }

  /// Prints stages once the command has taken a while. Quick commands print nothing.
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    auto patience = terminal ? std::chrono::milliseconds(300) : std::chrono::milliseconds(2000);
    changed.wait_until(lock, begin + patience, [this] { return done; });
    while (!done) {
      print();
      changed.wait(lock);
    }
    if (terminal && !shown.empty())
      llvm::errs() << "\r\033[K";
  }
};

Progress::Progress(llvm::StringRef what) : state(std::make_unique<State>()) {
  state->what = what.str();
  state->printer = std::thread([this] { state->run(); });
}

Progress::~Progress() {
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->done = true;
  }
  state->changed.notify_all();
  state->printer.join();
}

void Progress::stage(llvm::StringRef name) {
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->stage = name.str();
  }
  state->changed.notify_all();
}
