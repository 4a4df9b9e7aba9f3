// at::parallel_for works only in sources compiled with OpenMP switched on, and linking an OpenMP of one's own gives the
// process a second pool of threads, which fights the first for the cores. So the entry point that gcc's code calls is
// taken from the library that torch itself has loaded (LLVM's and Intel's runtimes have it too).
#include "fused_parallel.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <memory>
#include <new>

#if !defined(_OPENMP) && !defined(_WIN32)
extern "C" void GOMP_parallel(void (*body)(void*), void* data, std::uint32_t threads, std::uint32_t flags)
    __attribute__((weak));
#endif

namespace attnscope::fused {
namespace {

struct Queue {
  void (*task)(const void*, int64_t);
  const void* context;
  int64_t count;
  std::atomic<int64_t> next{0};
};

// Each thread takes the next task when it is done with the last: causal tasks are of unequal size.
void work(void* data) {
  Queue& queue = *static_cast<Queue*>(data);
  for (int64_t i = queue.next.fetch_add(1, std::memory_order_relaxed); i < queue.count;
       i = queue.next.fetch_add(1, std::memory_order_relaxed)) {
    queue.task(queue.context, i);
  }
}

constexpr std::align_val_t alignment{64};

struct Release {
  void operator()(char* memory) const { ::operator delete(memory, alignment); }
};

}  // namespace

int64_t threads_available() {
#if !defined(_OPENMP) && !defined(_WIN32)
  if (GOMP_parallel == nullptr) {
    return 1;
  }
#endif
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

void run_parallel(int64_t count, void (*task)(const void* context, int64_t index), const void* context) {
  Queue queue{task, context, count};
#if !defined(_OPENMP) && !defined(_WIN32)
  GOMP_parallel(work, &queue, static_cast<std::uint32_t>(at::get_num_threads()), 0);
#else
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t, int64_t) { work(&queue); });
#endif
}

void* thread_memory(std::size_t bytes) {
  thread_local std::unique_ptr<char, Release> memory;
  thread_local std::size_t size = 0;
  if (size < bytes) {
    memory.reset();
    size = 0;
    memory.reset(static_cast<char*>(::operator new(bytes, alignment)));
    size = bytes;
  }
  return memory.get();
}

}  // namespace attnscope::fused
