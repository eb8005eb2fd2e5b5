// Live reads of subjects that many ask for at once: one at a time for each, whose answer serves all
// who asked before it was sent. Whoever asks later waits for the next one: an answer that may be
// older than the question proves nothing. A read that hangs holds the next one up for a second at
// most.
//
//   SharedReads reads(loop, [this](std::string node, SteadyTime by) { return read(node, by); });
//   auto task = reads.ask(node, by);
//   const Status read = co_await task;
//
// Loop only. Every read must end, and all must have ended before this is destroyed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/loop.h"
#include "core/result.h"
#include "core/task.h"

namespace holdfast::controller {

class SharedReads {
 public:
  // A read that has no answer by then fails.
  using Read = std::function<Task<Status>(std::string subject, SteadyTime by)>;
  SharedReads(Loop& loop, Read read);
  ~SharedReads();

  // An error: nothing is known. `by` is kept for each of those who share a read.
  Task<Status> ask(std::string subject, SteadyTime by);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::controller
