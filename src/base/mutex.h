// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

// Which mutex protects what, for clang's -Wthread-safety (tools/thread_safety.sh). Other compilers skip it.
#ifdef __clang__
#define GL_THREAD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define GL_THREAD_ATTRIBUTE(...)
#endif
#define GL_GUARDED_BY(mutex) GL_THREAD_ATTRIBUTE(guarded_by(mutex))         // a member
#define GL_REQUIRES(mutex) GL_THREAD_ATTRIBUTE(requires_capability(mutex))  // a function: the caller holds the mutex
#define GL_ACQUIRE(...) GL_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define GL_RELEASE(...) GL_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))

namespace gpuledger {

// A std::mutex that clang can follow: libstdc++'s own has no annotations, so that clang checks nothing about it.
class GL_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
  friend class MutexLock;  // the only way to lock it
  std::mutex mutex_;
};

// Holds the mutex while it lives. Has lock and unlock for std::condition_variable_any, which calls them while it waits.
// Arguments that a wait takes by reference (a deadline) must not be guarded by the mutex: the wait reads them without
// it.
class GL_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) GL_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() GL_RELEASE() = default;
  void lock() GL_ACQUIRE() { lock_.lock(); }
  void unlock() GL_RELEASE() { lock_.unlock(); }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace gpuledger
