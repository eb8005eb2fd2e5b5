#include "agent/base/file_thread.h"

#include <condition_variable>
#include <thread>
#include <utility>

#include <boost/asio/post.hpp>

#include "core/thread_annotations.h"

namespace holdfast::agent {

// Lives until both sides are gone.
struct FileThread::Shared {
  // Loop only.
  std::thread thread;
  bool busy = false;
  bool closed = false;

  Mutex mutex;
  std::condition_variable_any changed;
  boost::asio::io_context* io HOLDFAST_GUARDED_BY(mutex) = nullptr;  // null: the loop is gone
  Work next HOLDFAST_GUARDED_BY(mutex);

  // False: there will be none.
  bool take(Work& work) {
    const MutexLock lock(mutex);
    while (io != nullptr && !next) changed.wait(mutex);
    work = std::exchange(next, nullptr);
    return io != nullptr;
  }
};

FileThread::FileThread(boost::asio::io_context& io) : shared_(std::make_shared<Shared>()) {
  {
    const MutexLock lock(shared_->mutex);
    shared_->io = &io;
  }
  shared_->thread = std::thread(&FileThread::serve, shared_);
}

FileThread::~FileThread() {
  shared_->closed = true;
  {
    const MutexLock lock(shared_->mutex);
    shared_->io = nullptr;
  }
  shared_->changed.notify_one();
  if (shared_->busy) {
    shared_->thread.detach();
  } else {
    shared_->thread.join();
  }
}

bool FileThread::busy() const { return shared_->busy; }

void FileThread::run(Work work) {
  shared_->busy = true;
  {
    const MutexLock lock(shared_->mutex);
    shared_->next = std::move(work);
  }
  shared_->changed.notify_one();
}

void FileThread::serve(const std::shared_ptr<Shared>& shared) {
  Work work;
  while (shared->take(work)) {
    Then then = work();
    work = nullptr;
    const MutexLock lock(shared->mutex);
    if (shared->io == nullptr) return;
    boost::asio::post(*shared->io, [shared, then = std::move(then)] {
      if (shared->closed) return;
      shared->busy = false;
      then();
    });
  }
}

}  // namespace holdfast::agent
