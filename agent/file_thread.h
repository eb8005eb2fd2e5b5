// Work that may hang (files on a disk or in a folder that somebody mounted over), on a thread of
// its own. What it returns runs on the loop; the loop never waits for it.
//
//   FileThread files(io);
//   files.run([path]() -> FileThread::Then {
//     std::string text = read(path);                 // on the thread
//     return [text = std::move(text)] { use(text); };  // on the loop
//   });
//
// One piece of work at a time: what hangs is not followed by more. All calls are the loop's. The
// work must hold nothing of its caller but copies: where it hangs it outlives him.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>

namespace holdfast::agent {

class FileThread {
 public:
  using Then = std::function<void()>;
  using Work = std::function<Then()>;

  explicit FileThread(boost::asio::io_context& io);
  // Nothing of the work that is under way runs on the loop any more. Does not wait for it.
  ~FileThread();

  // The work before has not come back yet.
  bool busy() const;
  // Not while it is busy.
  void run(Work work);

 private:
  struct Shared;

  static void serve(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::agent
