// Runs work that may hang (a slow disk, a folder with a dead mount) on a thread of its own. The
// function that the work returns runs on the loop. The loop never waits for it.
//
//   FileThread files(io);
//   files.run([path]() -> FileThread::Then {
//     std::string text = read(path);                 // on the thread
//     return [text = std::move(text)] { use(text); };  // on the loop
//   });
//
// One piece of work at a time: no work follows work that hangs. Loop only. The work must hold only
// copies of its caller's data, because hanging work outlives the caller.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>

namespace holdfast::agent {

class FileThread {
 public:
  using Then = std::function<void()>;
  using Work = std::function<Then()>;

  // Starts the thread: later a command may have used up the processes of the machine. Throws
  // std::system_error if the thread cannot start.
  explicit FileThread(boost::asio::io_context& io);
  // The work in progress posts nothing to the loop after this. Does not wait for it.
  ~FileThread();

  // The previous work has not returned yet.
  bool busy() const;
  // Only if not busy().
  void run(Work work);

 private:
  struct Shared;

  static void serve(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::agent
