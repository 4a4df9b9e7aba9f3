// Several rounds of tasks, each of which needs all of the round before, in one parallel region.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#if defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>
#endif

#include "fused_parallel.h"

namespace attnscope::fused {

constexpr int64_t most_shares = 8;

// The tasks that one thread begins with. Each on a cache line of its own: lines that go back and forth between cores cost
// a small step more than its arithmetic.
struct alignas(64) Share {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

// Tasks that depend on those of the phase before.
struct Phase {
  int64_t count;
  void (*task)(const void* context, int64_t index);
  const void* context;
  int64_t share_count = 1;
  std::array<Share, most_shares> shares;
  alignas(64) std::atomic<int64_t> done{0};

  template <class F>
  Phase(int64_t tasks, const F& f)
      : count(tasks),
        task([](const void* self, int64_t index) { (*static_cast<const F*>(self))(index); }),
        context(&f) {}

  void divide(int64_t threads) {
    share_count = std::clamp<int64_t>(std::min(threads, count), 1, most_shares);
    for (int64_t i = 0; i < share_count; ++i) {
      Share& share = shares[static_cast<size_t>(i)];
      share.next.store(count * i / share_count, std::memory_order_relaxed);
      share.end = count * (i + 1) / share_count;
    }
  }

  // Its own share, then what the others have not begun.
  void work(int64_t thread) {
    int64_t mine = 0;
    for (int64_t i = 0; i < share_count; ++i) {
      Share& share = shares[static_cast<size_t>((thread + i) % share_count)];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const int64_t index = share.next.fetch_add(1, std::memory_order_relaxed);
        if (index < share.end) {
          task(context, index);
          ++mine;
        }
      }
    }
    if (mine > 0) {
      done.fetch_add(mine, std::memory_order_release);
    }
  }
};

// Between two looks: the processor's hint that this is waiting, and now and then the core to whoever has work for it.
void breathe(int64_t turn) {
  if (turn % 1024 == 1023) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#endif
}

// All phases in one parallel region: waking the threads once is a good part of a small step. A thread waits for tasks
// that others hold, never for others to arrive, so that fewer threads than asked for finish the work as well.
template <size_t N>
void run_phases(std::array<Phase, N>& phases, bool worth_it) {
  const int64_t threads = worth_it ? at::get_num_threads() : 1;
  for (Phase& phase : phases) {
    phase.divide(threads);
  }
  fused::for_each(threads, worth_it, [&](int64_t thread) {
    for (size_t i = 0; i < N; ++i) {
      phases[i].work(thread);
      // The last phase's end is the region's.
      for (int64_t turn = 0; i + 1 < N && phases[i].done.load(std::memory_order_acquire) < phases[i].count; ++turn) {
        breathe(turn);
      }
    }
  });
}

}  // namespace attnscope::fused
