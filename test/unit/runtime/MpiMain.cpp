//===- MpiMain.cpp - The hand-written program on real MPI ranks --------------===//
//
// Run by test/run/mpi_runtime.sh under mpirun. Returns 0 when all held on this rank.
//
//===----------------------------------------------------------------------===//
#define OMPI_SKIP_MPICXX 1
#include "stepc/mpi.h"
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace stepc::test;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

namespace {

int rank, size;

stepc_transport connect() {
  auto transport = sized<stepc_transport>();
  char error[256] = "";
  EXPECT_EQ(stepc_mpi_transport(MPI_COMM_WORLD, &transport, error, sizeof(error)), STEPC_OK)
      << error;
  EXPECT_EQ(transport.rank, rank);
  EXPECT_EQ(transport.size, size);
  return transport;
}

stepc_instance *create(const stepc_library *library, double timeout) {
  stepc_transport transport = connect();
  stepc_options options = defaultOptions();
  options.timeout_seconds = timeout;
  options.transport = &transport;
  stepc_instance *instance = nullptr;
  char error[512] = "";
  EXPECT_EQ(library->create(&options, &instance, error, sizeof(error)), STEPC_OK) << error;
  return instance;
}

void stepsLikeOneRank() {
  const stepc_library *library = load(size);
  stepc_instance *instance = create(library, 60);
  Trainer trainer(library, instance);
  trainer.place(rank, size);
  trainer.bindAll();
  for (int64_t step = 1; step <= 20; ++step) {
    trainer.fillGradients(step);
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
  }
  // Only this rank's part can differ.
  std::vector<std::vector<float>> expected = expectedParameters(20), whole = expected;
  trainer.collect(whole);
  EXPECT_EQ(whole, expected);
  stepc_counters done = trainer.executed(), planned = trainer.planned();
  EXPECT_EQ(done.bytes_sent, planned.bytes_sent);
  EXPECT_EQ(done.messages_received, planned.messages_received);
  library->destroy(instance);
}

// Of ranks 2, 0 and 3, in this order; rank 1 goes its way.
void gathersOnACommunicator() {
  constexpr int64_t kElements = 100; // more bytes than one part of runtime-mpi-parts
  const std::vector<int32_t> members = {2, 0, 3};
  stepc_transport transport = connect();
  char error[256] = "";
  if (rank != 1) {
    void *communicator = nullptr, *handle = nullptr;
    EXPECT_EQ(transport.open_communicator(transport.context, members.data(), 3, &communicator,
                                          &handle, error, sizeof(error)),
              STEPC_OK)
        << error;
    std::vector<int64_t> mine(kElements, 10 + rank), got(3 * kElements);
    stepc_operation gather{
        STEPC_ALL_GATHER, -1, communicator, mine.data(), got.data(), kElements * 8, 7, 0, 0};
    stepc_operations group{sizeof(group), sizeof(gather), &gather, 1, nullptr};
    EXPECT_EQ(transport.start(transport.context, &group, &handle, error, sizeof(error)), STEPC_OK)
        << error;
    int32_t status;
    while (!(status = transport.test(transport.context, handle, error, sizeof(error))))
      ;
    EXPECT_EQ(status, 1) << error;
    for (int64_t i = 0; i < 3 * kElements; ++i)
      EXPECT_EQ(got[i], 10 + members[i / kElements]);
    gather.kind = STEPC_REDUCE_SCATTER;
    EXPECT_EQ(transport.start(transport.context, &group, &handle, error, sizeof(error)),
              STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(error, HasSubstr("operation 0 is of kind 3"));
    transport.close_communicator(transport.context, communicator);
  }
  transport.destroy(transport.context);
}

void refusesAnotherLibrary() {
  const stepc_library *library = load(size, rank == 2 ? "hash" : "");
  stepc_transport transport = connect();
  stepc_options options = defaultOptions();
  options.transport = &transport;
  stepc_instance *instance = nullptr;
  char error[512] = "";
  EXPECT_EQ(library->create(&options, &instance, error, sizeof(error)), STEPC_ERROR_PLAN);
  EXPECT_THAT(error, HasSubstr("rank 2 holds another library"));
  transport.destroy(transport.context);
}

void aLateRankTimesOut() {
  const stepc_library *library = load(size);
  stepc_instance *instance = create(library, 1);
  Trainer trainer(library, instance);
  trainer.place(rank, size);
  trainer.bindAll();
  EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
  // As a rank that is stopped: it neither computes nor lets MPI progress.
  if (rank == 2)
    std::this_thread::sleep_for(std::chrono::seconds(3));
  auto begin = std::chrono::steady_clock::now();
  int32_t status = trainer.step();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_THAT(status, AnyOf(STEPC_ERROR_TIMEOUT, STEPC_ERROR_TRANSPORT)) << trainer.error();
  if (rank == 2)
    EXPECT_EQ(status, STEPC_ERROR_TRANSPORT);
  EXPECT_THAT(trainer.error(), AllOf(HasSubstr("no answer within 1 seconds from"),
                                     HasSubstr("rank 2"), HasSubstr("half stepped")));
  EXPECT_EQ(trainer.step(), STEPC_ERROR_POISONED);
  EXPECT_EQ(library->recover(instance), STEPC_ERROR_TRANSPORT);
  library->destroy(instance);
}

// In the first step by what ranks tell each other, later by the messages of exchanges.
void otherRatesAreNamed() {
  for (int64_t before : {0, 2}) {
    const stepc_library *library = load(size);
    stepc_instance *instance = create(library, 60);
    Trainer trainer(library, instance);
    trainer.place(rank, size);
    trainer.bindAll();
    for (int64_t step = 0; step < before; ++step)
      EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    if (rank == 2)
      EXPECT_EQ(library->set_hyperparameter(instance, Double, "lr", 0.75), STEPC_OK);
    EXPECT_THAT(trainer.step(), AnyOf(STEPC_ERROR_AGREEMENT, STEPC_ERROR_TRANSPORT));
    EXPECT_THAT(trainer.error(), AllOf(HasSubstr("of 'w0' and 2 more on rank "), HasSubstr("0.75 "),
                                       HasSubstr("0.125 "), HasSubstr("rank 2")));
    library->destroy(instance);
  }
}

void anAbortReachesThePeers() {
  const stepc_library *library = load(size);
  stepc_instance *instance = create(library, 60);
  Trainer trainer(library, instance);
  trainer.place(rank, size);
  trainer.bindAll();
  MPI_Barrier(MPI_COMM_WORLD); // else a peer may hear of it in create
  if (rank == 1) {
    EXPECT_EQ(library->abort(instance, "found no gradient"), STEPC_OK);
  } else {
    EXPECT_EQ(trainer.step(), STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(trainer.error(), HasSubstr("rank 1 aborted: found no gradient"));
  }
  library->destroy(instance);
}

void run(const char *name, void (*body)()) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("%s\n", name), std::fflush(stdout);
  body();
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  char error[128];
  auto transport = sized<stepc_transport>();
  EXPECT_EQ(stepc_mpi_transport(MPI_COMM_WORLD, &transport, error, sizeof(error)),
            STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "MPI is not initialized");
  transport.struct_size = 0;
  EXPECT_EQ(stepc_mpi_transport(MPI_COMM_WORLD, &transport, error, sizeof(error)), STEPC_ERROR_ABI);
  EXPECT_STREQ(error, "expected a transport of 96 bytes, found struct_size 0");
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  run("steps like one rank", stepsLikeOneRank);
  run("gathers on a communicator", gathersOnACommunicator);
  run("refuses another library", refusesAnotherLibrary);
  run("a late rank times out", aLateRankTimesOut);
  run("other rates are named", otherRatesAreNamed);
  run("an abort reaches the peers", anAbortReachesThePeers);
  // A world after aborted ones is as good as new.
  run("steps like one rank again", stepsLikeOneRank);
  int failed = testing::UnitTest::GetInstance()->Failed(), anyFailed = 0;
  MPI_Allreduce(&failed, &anyFailed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("%s\n", anyFailed ? "FAILED" : "PASSED");
  MPI_Finalize();
  return anyFailed;
}
