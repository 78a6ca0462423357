// gpu_trainer_cuda.h - A GPU, its stream and its memory, by CUDA's driver API, as gpu_trainer.cpp uses them.
#ifndef GPU_TRAINER_CUDA_H
#define GPU_TRAINER_CUDA_H

#include <cuda.h>

#include <cstdint>
#include <stdexcept>
#include <string>

/// What ends the program, on this rank.
[[noreturn]] inline void fail(const std::string &what) { throw std::runtime_error(what); }

inline void check(CUresult result, const char *doing) {
  const char *name = nullptr, *text = nullptr;
  if (result == CUDA_SUCCESS)
    return;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  fail(std::string(doing) + ": " + (name ? name : "?") + ", " + (text ? text : "?"));
}

/// One of them with its primary context, which the library uses as well, and the trainer's stream.
struct Gpu {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent done = nullptr; // at the end of a step

  explicit Gpu(int number) {
    check(cuDeviceGet(&device, number), "finding the GPU");
    check(cuDevicePrimaryCtxRetain(&context, device), "entering the GPU's context");
    check(cuCtxSetCurrent(context), "entering the GPU's context");
    check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
    check(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING), "making an event");
  }
  Gpu(const Gpu &) = delete;
  ~Gpu() {
    if (done)
      cuEventDestroy(done);
    if (stream)
      cuStreamDestroy(stream);
    if (context)
      cuDevicePrimaryCtxRelease(device);
  }
};

/// What is on the stream is over when this ends: memory that it uses may go afterwards.
struct Drain {
  const Gpu &gpu;
  ~Drain() { cuStreamSynchronize(gpu.stream); }
};

/// Numbers on the GPU, and where they come from or go to on the host: pinned, so that copies need not wait.
struct Array {
  int64_t count;
  CUdeviceptr gpu = 0;
  float *host = nullptr;

  explicit Array(int64_t count) : count(count) {
    void *pinned = nullptr;
    check(cuMemAlloc(&gpu, size_t(bytes())), "allocating memory of the GPU");
    check(cuMemAllocHost(&pinned, size_t(bytes())), "allocating pinned memory");
    host = static_cast<float *>(pinned);
  }
  Array(Array &&other) : count(other.count), gpu(other.gpu), host(other.host) {
    other.gpu = 0;
    other.host = nullptr;
  }
  ~Array() {
    if (gpu)
      cuMemFree(gpu);
    if (host)
      cuMemFreeHost(host);
  }
  int64_t bytes() const { return count * int64_t(sizeof(float)); }
  /// The address of a number on the GPU, as the library takes it.
  void *at(int64_t number) const { return reinterpret_cast<float *>(gpu) + number; }
  void upload(CUstream stream) const {
    check(cuMemcpyHtoDAsync(gpu, host, size_t(bytes()), stream), "copying to the GPU");
  }
  void download(CUstream stream) const {
    check(cuMemcpyDtoHAsync(host, gpu, size_t(bytes()), stream), "copying from the GPU");
  }
};

#endif
