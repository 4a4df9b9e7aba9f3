// Tasks over torch's own threads, and memory for each of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attnscope::fused {

// How many threads would work on a call made here and now.
int64_t threads_available();

// task(context, i) for every i in [0, count), in any order, on all of torch's threads; tasks must not throw.
void run_parallel(int64_t count, void (*task)(const void* context, int64_t index), const void* context);

// The same for a callable. `worth_it`: whether the work outweighs waking the threads.
template <class F>
void for_each(int64_t count, bool worth_it, const F& f) {
  if (count <= 1 || !worth_it || threads_available() == 1) {
    for (int64_t i = 0; i < count; ++i) {
      f(i);
    }
    return;
  }
  run_parallel(count, [](const void* context, int64_t index) { (*static_cast<const F*>(context))(index); }, &f);
}

// Memory of the calling thread, aligned to 64 bytes and kept until the thread ends; a second call may move it.
void* thread_memory(std::size_t bytes);

}  // namespace attnscope::fused
