//===- products.cpp - Times products as they are generated -----------------===//
//
// Reads requests, one a line, and answers each with the seconds of the fastest of a few runs,
// so that compare_products.py can take turns with another library in one noisy minute:
//
//   product M N K THREADS BITS [symmetric] [nt] [tn] [f32|bf16]
//   newton ROWS COLS STEPS THREADS BITS [f32|bf16]
//
//===----------------------------------------------------------------------===//
#include "test/unit/products/Jit.h"

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <sys/mman.h>
#include <thread>
#include <time.h>

using namespace stepc;
using namespace stepc::test;

namespace {

/// Threads that spin for a short while between the launches of a run, as the runtime's do.
class Pool {
public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i)
      workers.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread &worker : workers)
      worker.join();
  }
  void run(KernelFunction kernel, void *const *arguments, int64_t items) {
    if (workers.empty())
      return kernel(arguments, 0, items);
    task = {kernel, arguments, items};
    next.store(0);
    pending.store(int(workers.size()));
    {
      std::lock_guard lock(mutex);
      epoch.fetch_add(1);
    }
    wake.notify_all();
    take();
    while (pending.load())
      __builtin_ia32_pause();
  }

private:
  struct Task {
    KernelFunction kernel;
    void *const *arguments;
    int64_t items;
  };
  void take() {
    for (int64_t item; (item = next.fetch_add(1)) < task.items;)
      task.kernel(task.arguments, item, item + 1);
  }
  void work() {
    for (int64_t seen = 0;;) {
      for (int spin = 0; spin < 2000 && epoch.load() == seen; ++spin)
        __builtin_ia32_pause();
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stopping || epoch.load() != seen; });
        if (stopping)
          return;
        seen = epoch.load();
      }
      take();
      pending.fetch_sub(1);
    }
  }
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<int64_t> epoch{0}, next{0};
  std::atomic<int> pending{0};
  bool stopping = false;
  Task task{};
};

/// In huge pages where it fills them, as the runtime's arena is.
struct Memory {
  explicit Memory(int64_t bytes) : data(std::aligned_alloc(kHuge, (bytes / kHuge + 1) * kHuge)) {
    madvise(data, bytes / kHuge * kHuge, MADV_HUGEPAGE);
  }
  static constexpr int64_t kHuge = 2 << 20;
  Memory(Memory &&other) : data(std::exchange(other.data, nullptr)) {}
  ~Memory() { std::free(data); }
  void *data;
};

struct Product {
  int64_t m, n, k;
  bool symmetric = false, transposeLhs = false, transposeRhs = false, addend = false;
  double alpha = 1, beta = 0;
};

std::string memref(int64_t rows, int64_t cols, const std::string &type) {
  return "memref<?x" + std::to_string(rows) + "x" + std::to_string(cols) + "x" + type + ">";
}

Code compileProduct(const Product &p, const std::string &type, const TargetShape &target) {
  std::vector<std::string> types = {
      p.transposeLhs ? memref(p.k, p.m, type) : memref(p.m, p.k, type),
      p.transposeRhs ? memref(p.n, p.k, type) : memref(p.k, p.n, type), memref(p.m, p.n, type),
      memref(p.m, p.n, type)};
  char flags[160];
  std::snprintf(flags, sizeof(flags), "{alpha = %.17e : f64, beta = %.17e : f64%s%s%s}", p.alpha,
                p.beta, p.transposeLhs ? ", transpose_lhs" : "",
                p.transposeRhs ? ", transpose_rhs" : "", p.symmetric ? ", symmetric" : "");
  Code code = compile("optim.product %0, %1 " + std::string(p.addend ? "plus %3 " : "") +
                          "outs(%2 : " + types[2] + ") " + flags + " : " + types[0] + ", " +
                          types[1] + (p.addend ? ", " + types[3] : ""),
                      types, target, std::getenv("STEPC_BENCHMARK_ASSEMBLY") != nullptr);
  if (!code.error.empty()) {
    std::fprintf(stderr, "%s\n", code.error.c_str());
    std::exit(1);
  }
  return code;
}

void launch(Pool &pool, const Code &code, const std::vector<void *> &operands, void *scratch) {
  for (const CompiledLaunch &launch : code.launches) {
    std::vector<void *> arguments =
        launch.arguments([&](int buffer) { return buffer < 0 ? scratch : operands[buffer]; });
    pool.run(launch.kernel, arguments.data(), launch.itemsPerBlock);
  }
}

/// Time of the thread for one thread: other processes then disturb less.
double now(int threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

double fastest(int threads, const std::function<void()> &run) {
  double best = 1e9, total = 0;
  for (int i = 0; i < 3 || (total < 0.05 && i < 50); ++i) {
    double start = now(threads);
    run();
    double seconds = now(threads) - start;
    best = std::min(best, seconds), total += seconds;
  }
  return best;
}

void fill(Memory &memory, int64_t elements, const std::string &type) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal(0, 0.01f);
  for (int64_t i = 0; i < elements; ++i) {
    float x = normal(engine);
    if (type == "f32")
      static_cast<float *>(memory.data)[i] = x;
    else
      static_cast<uint16_t *>(memory.data)[i] = std::bit_cast<uint32_t>(x) >> 16;
  }
}

/// What a request keeps between its repetitions.
struct Prepared {
  std::vector<Code> codes;
  std::vector<Memory> memory;
  std::function<void(Pool &)> run;
};

Prepared prepare(const std::string &line) {
  std::istringstream words(line);
  std::string what, word, type = "f32";
  Prepared prepared;
  Product p{};
  int64_t rows = 0, cols = 0, steps = 0, threads, bits;
  words >> what;
  if (what == "product")
    words >> p.m >> p.n >> p.k;
  else
    words >> rows >> cols >> steps;
  words >> threads >> bits;
  while (words >> word) {
    p.symmetric |= word == "symmetric";
    p.transposeRhs |= word == "nt";
    p.transposeLhs |= word == "tn";
    if (word == "bf16")
      type = word;
  }
  TargetShape target;
  target.vectorBits = bits;
  auto add = [&](int64_t elements, const std::string &of) {
    prepared.memory.emplace_back(elements * (of == "f32" ? 4 : 2));
    fill(prepared.memory.back(), elements, of);
    return prepared.memory.back().data;
  };
  if (what == "product") {
    void *lhs = add(p.m * p.k, type), *rhs = add(p.k * p.n, type), *out = add(p.m * p.n, type);
    prepared.codes.push_back(compileProduct(p, type, target));
    Code code = prepared.codes[0];
    void *scratch = add(code.scratchBytesPerBlock / 4, "f32");
    prepared.run = [=](Pool &pool) { launch(pool, code, {lhs, rhs, out}, scratch); };
    return prepared;
  }
  // torch.optim.Muon's coefficients; rows ≤ cols.
  Product gram{rows, rows, cols, true, false, true};
  Product poly{rows, rows, rows, true, false, false, true, 2.0315, -4.775};
  Product update{rows, cols, rows, false, false, false, true, 1.0, 3.4445};
  for (const Product &product : {gram, poly, update})
    prepared.codes.push_back(compileProduct(product, type, target));
  void *x = add(rows * cols, type), *y = add(rows * cols, type);
  void *a = add(rows * rows, type), *b = add(rows * rows, type);
  std::vector<Code> codes = prepared.codes;
  int64_t bytes = 0;
  for (const Code &code : codes)
    bytes = std::max(bytes, code.scratchBytesPerBlock);
  void *scratch = add(bytes / 4, "f32");
  prepared.run = [=](Pool &pool) {
    void *from = x, *to = y;
    for (int64_t step = 0; step < steps; ++step) {
      launch(pool, codes[0], {from, from, a}, scratch);
      launch(pool, codes[1], {a, a, b, a}, scratch);
      launch(pool, codes[2], {b, from, to, from}, scratch);
      std::swap(from, to);
    }
  };
  return prepared;
}

} // namespace

int main() {
  std::map<std::string, Prepared> known;
  std::map<int, std::unique_ptr<Pool>> pools;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what;
    int64_t a, b, c;
    int threads = 1;
    words >> what >> a >> b >> c >> threads;
    auto found = known.find(line);
    if (found == known.end())
      found = known.emplace(line, prepare(line)).first;
    auto &pool = pools[threads];
    if (!pool)
      pool = std::make_unique<Pool>(threads);
    std::printf("%.9f\n", fastest(threads, [&] { found->second.run(*pool); }));
    std::fflush(stdout);
  }
}
