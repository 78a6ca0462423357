//===- GpuSealKernels.cpp - Seals of messages that only a GPU touches -------===//
//
// Does on a GPU what runtime/core/Agreement.cpp does on the host. A seal is sums, modulo STEPC_SEAL_PRIME, of
// the step counts and hyperparameters that a step reads. Seals stand after each message and show ranks
// whether they step with equal numbers.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/ParameterKernel.h"
#include "passes/kernels/gpu/BlockBuilder.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

class SealEmitter {
public:
  SealEmitter(gpu::GPUModuleOp code, Location loc)
      : code(code), b(code.getContext(), loc), i64(b.getI64Type()), wide(b.getIntegerType(128)) {}

  GpuKernels addSeals(StringRef name) {
    return add(name, kReport, [&] { emitSeals(); });
  }
  GpuKernels addCheck(StringRef name) {
    return add(name, kReport + 1, [&] { emitCheck(); });
  }

private:
  static constexpr int64_t kSealWords = sizeof(stepc_seal) / sizeof(uint64_t);
  /// The order of the arguments (kernel_abi.h).
  enum : unsigned { kRows, kTerms, kColumns, kMessages, kRecords, kSeals, kReport };

  GpuKernels add(StringRef name, unsigned arguments, function_ref<void()> body) {
    auto known = code.lookupSymbol<gpu::GPUFuncOp>(name);
    if (!known) {
      b.begin(code, name, arguments, 1);
      known = b.function;
      body();
    }
    return {{known, 1}};
  }

  //===--- memory ---===//

  Value argument(unsigned index) { return b.function.getArgument(index); }
  /// Element `index` of an argument's list of structs.
  Value element(unsigned list, size_t bytes, Value index) {
    return b.address(argument(list), b.getI8Type(), b.mul(index, int64_t(bytes)));
  }
  Value field(Value record, size_t offset) { return b.load(i64, fieldOf(b, record, offset)); }
  Value wordAt(Value seal, int64_t word) { return b.address(seal, i64, word); }
  void eachWord(function_ref<void(Value)> body) { b.loop(0, kSealWords, 1, body); }

  //===--- arithmetic modulo the prime ---===//

  Value widened(Value x) { return arith::ExtUIOp::create(b, b.loc, wide, x); }
  Value low(Value x) { return arith::TruncIOp::create(b, b.loc, i64, x); }
  Value wideConstant(uint64_t value) {
    return arith::ConstantOp::create(b, b.loc, b.getIntegerAttr(wide, APInt(128, value)));
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value c) {
    return arith::CmpIOp::create(b, b.loc, predicate, a, c);
  }
  /// x modulo the prime. 2^64 is 59 modulo the prime. So 59 times the upper half is added to the lower half,
  /// twice. At most one prime is then left to subtract.
  Value reduced(Value x) {
    Value below = wideConstant(-uint64_t(STEPC_SEAL_PRIME)), prime = wideConstant(STEPC_SEAL_PRIME);
    Value bits = wideConstant(64);
    for (int i = 0; i < 2; ++i)
      x = b.add(b.mul(arith::ShRUIOp::create(b, b.loc, x, bits).getResult(), below),
                widened(low(x)));
    Value isAbove = compare(arith::CmpIPredicate::uge, x, prime);
    return low(arith::SelectOp::create(b, b.loc, isAbove, b.sub(x, prime), x));
  }
  Value plus(Value x, Value y) { return reduced(b.add(widened(x), widened(y))); }
  Value times(Value x, Value y) { return reduced(b.mul(widened(x), widened(y))); }

  //===--- kernels ---===//

  /// Calls body(column, address of the number) for the step count and the hyperparameters of a term's
  /// parameter.
  void eachNumber(Value term, function_ref<void(Value column, Value number)> body) {
    Value record =
        recordOf(b, argument(kRecords), field(term, offsetof(stepc_seal_term, parameter)));
    body(b.constant(0), stepsTaken(b, record));
    Value values =
        b.load(b.pointer, fieldOf(b, record, offsetof(stepc_parameter_record, hyperparameters)));
    b.loop(b.constant(0), field(term, offsetof(stepc_seal_term, columns)), 1,
           [&](Value i) { body(b.add(i, 1), b.address(values, i64, i)); });
  }

  Value sumAt(Value sums, Value thread, Value word) {
    return b.address(sums, i64, b.add(b.mul(thread, kSealWords), word));
  }

  /// Adds up one seal by a GPU block. Each thread adds up some terms. Then half of the threads add the sums
  /// of the other half, and so on down to one.
  void addUp(Value row, Value seal) {
    Value sums = b.memory(i64, kThreads * kSealWords);
    eachWord([&](Value word) { b.store(b.constant(0), sumAt(sums, b.thread, word)); });
    Value first = field(row, offsetof(stepc_seal_row, first_term));
    b.loop(b.add(first, b.thread), field(row, offsetof(stepc_seal_row, last_term)), kThreads,
           [&](Value index) {
             Value term = element(kTerms, sizeof(stepc_seal_term), index);
             eachNumber(term, [&](Value column, Value number) {
               Value bits = b.load(i64, number);
               Value ofColumn = element(kColumns, sizeof(stepc_seal), column);
               eachWord([&](Value word) {
                 Value weights = fieldOf(b, term, offsetof(stepc_seal_term, weights));
                 Value product = times(times(b.load(i64, b.address(ofColumn, i64, word)), bits),
                                       b.load(i64, b.address(weights, i64, word)));
                 Value sum = sumAt(sums, b.thread, word);
                 b.store(plus(b.load(i64, sum), product), sum);
               });
             });
           });
    b.barrier();
    for (int64_t half = kThreads / 2; half >= 1; half /= 2) {
      b.when(b.below(b.thread, half), [&] {
        eachWord([&](Value word) {
          Value sum = sumAt(sums, b.thread, word);
          Value other = b.load(i64, sumAt(sums, b.add(b.thread, half), word));
          b.store(plus(b.load(i64, sum), other), sum);
        });
      });
      b.barrier();
    }
    b.when(b.below(b.thread, kSealWords), [&] {
      Value start = b.address(fieldOf(b, row, offsetof(stepc_seal_row, start)), i64, b.thread);
      Value sum = b.load(i64, b.address(sums, i64, b.thread));
      b.store(plus(sum, b.load(i64, start)), b.address(seal, i64, b.thread));
    });
  }

  void emitSeals() {
    Value row = element(kRows, sizeof(stepc_seal_row), b.slot);
    Value number = field(row, offsetof(stepc_seal_row, seal));
    Value seal = element(kSeals, sizeof(stepc_seal), number);
    Value isNew = field(row, offsetof(stepc_seal_row, is_new));
    b.when(compare(arith::CmpIPredicate::ne, isNew, b.constant(0)), [&] { addUp(row, seal); });
    b.barrier();
    // Each thread copies single bytes, because a message may begin at any byte.
    constexpr int64_t bytes = sizeof(stepc_seal);
    Type byte = b.getI8Type();
    Value first = field(row, offsetof(stepc_seal_row, first_message));
    Value place = b.remainder(b.thread, bytes);
    b.loop(b.add(first, b.quotient(b.thread, bytes)),
           field(row, offsetof(stepc_seal_row, last_message)), kThreads / bytes, [&](Value index) {
             Value message = element(kMessages, sizeof(stepc_sealed_message), index);
             b.store(b.load(byte, b.address(seal, byte, place), 1),
                     b.address(placeOf(message), byte, place), 1);
           });
  }

  /// Loads a word from eight bytes at any address.
  Value unaligned(Value from, int64_t word) {
    Value result = b.constant(0);
    for (int64_t i = 0; i < 8; ++i) {
      Value byte = b.load(b.getI8Type(), b.address(from, b.getI8Type(), 8 * word + i), 1);
      Value part = arith::ShLIOp::create(b, b.loc, arith::ExtUIOp::create(b, b.loc, i64, byte),
                                         b.constant(8 * i));
      result = arith::OrIOp::create(b, b.loc, result, part);
    }
    return result;
  }
  Value anyBit(Value x, Value y) { return arith::OrIOp::create(b, b.loc, x, y); }

  /// placeOf: the address of the seal in a message. ownOf: the address of this rank's seal for that message.
  Value placeOf(Value message) {
    return b.load(b.pointer, fieldOf(b, message, offsetof(stepc_sealed_message, address)));
  }
  Value ownOf(Value message) {
    return element(kSeals, sizeof(stepc_seal),
                   field(message, offsetof(stepc_sealed_message, seal)));
  }

  /// Whether both seals of a message are known and differ.
  Value differs(Value message) {
    Value theirs = placeOf(message), own = ownOf(message);
    Value zero = b.constant(0), anyOwn = zero, anyTheirs = zero, difference = zero;
    for (int64_t word = 0; word < kSealWords; ++word) {
      Value mine = b.load(i64, wordAt(own, word)), other = unaligned(theirs, word);
      anyOwn = anyBit(anyOwn, mine);
      anyTheirs = anyBit(anyTheirs, other);
      difference = anyBit(difference, arith::XOrIOp::create(b, b.loc, mine, other));
    }
    auto isNot = [&](Value x) { return compare(arith::CmpIPredicate::ne, x, zero); };
    return b.both(isNot(difference), b.both(isNot(anyOwn), isNot(anyTheirs)));
  }

  void emitCheck() {
    Value row = argument(kRows), report = argument(kReport);
    Value found = b.memory(i64, 1);
    Value isFirst = b.below(b.thread, 1);
    b.when(isFirst, [&] { b.store(b.constant(-1), found); });
    b.barrier();
    // If several messages differ, the last thread that writes decides. Any of them may be reported.
    b.loop(b.add(field(row, offsetof(stepc_seal_row, first_message)), b.thread),
           field(row, offsetof(stepc_seal_row, last_message)), kThreads, [&](Value index) {
             Value message = element(kMessages, sizeof(stepc_sealed_message), index);
             b.when(differs(message), [&] { b.store(index, found); });
           });
    b.barrier();
    Value index = b.load(i64, found);
    b.when(compare(arith::CmpIPredicate::sge, index, b.constant(0)), [&] {
      // Only the first difference is reported, so an earlier report stays.
      Value isThere = b.load(i64, fieldOf(b, report, offsetof(stepc_seal_report, is_there)));
      b.barrier();
      b.when(compare(arith::CmpIPredicate::eq, isThere, b.constant(0)), [&] {
        tell(row, report, element(kMessages, sizeof(stepc_sealed_message), index));
        b.barrier();
        b.when(isFirst, [&] {
          // Written last. So if the host finds 1, the report is complete.
          Value to = fieldOf(b, report, offsetof(stepc_seal_report, is_there));
          LLVM::StoreOp::create(b, b.loc, b.constant(1), to, 8, /*isVolatile=*/false,
                                /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                                LLVM::AtomicOrdering::release);
        });
      });
    });
  }

  void tell(Value row, Value report, Value message) {
    b.when(b.below(b.thread, int64_t(sizeof(stepc_sealed_message) / sizeof(int64_t))), [&] {
      Value to = fieldOf(b, report, offsetof(stepc_seal_report, message));
      b.store(b.load(i64, b.address(message, i64, b.thread)), b.address(to, i64, b.thread));
    });
    Value theirs = placeOf(message), own = ownOf(message);
    for (int64_t word = 0; word < kSealWords; ++word)
      b.when(compare(arith::CmpIPredicate::eq, b.thread, b.constant(word)), [&] {
        b.store(b.load(i64, wordAt(own, word)),
                wordAt(fieldOf(b, report, offsetof(stepc_seal_report, own)), word));
        b.store(unaligned(theirs, word),
                wordAt(fieldOf(b, report, offsetof(stepc_seal_report, theirs)), word));
      });
    Value parameters = field(report, offsetof(stepc_seal_report, parameters));
    Value columns = field(report, offsetof(stepc_seal_report, columns));
    Value numbers = fieldOf(b, report, sizeof(stepc_seal_report));
    Value first = field(row, offsetof(stepc_seal_row, first_term));
    b.loop(b.add(first, b.thread), field(row, offsetof(stepc_seal_row, last_term)), kThreads,
           [&](Value index) {
             Value term = element(kTerms, sizeof(stepc_seal_term), index);
             Value parameter = field(term, offsetof(stepc_seal_term, parameter));
             eachNumber(term, [&](Value column, Value number) {
               Value isCount = compare(arith::CmpIPredicate::eq, column, b.constant(0));
               Value behind =
                   b.add(b.add(parameters, b.mul(parameter, columns)), b.add(column, -1));
               Value place = arith::SelectOp::create(b, b.loc, isCount, parameter, behind);
               b.store(b.load(i64, number), b.address(numbers, i64, place));
             });
           });
  }

  gpu::GPUModuleOp code;
  BlockBuilder b;
  Type i64, wide;
};

} // namespace

GpuKernels addGpuSealKernel(gpu::GPUModuleOp code, exec::StartOp op) {
  return SealEmitter(code, op.getLoc()).addSeals("stepc_seal_messages");
}

GpuKernels addGpuSealCheckKernel(gpu::GPUModuleOp code, exec::AwaitOp op) {
  return SealEmitter(code, op.getLoc()).addCheck("stepc_check_seals");
}

} // namespace stepc::kernels
