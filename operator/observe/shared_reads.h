// Live reads that many callers share. Each subject has one read at a time, and its answer serves
// all callers who asked before it was sent. Later callers wait for the next read, because an answer
// older than the question proves nothing. A read that hangs delays the next by at most a second.
//
//   SharedReads reads(loop, [this](std::string node, SteadyTime by) { return read(node, by); });
//   auto task = reads.ask(node, by);
//   const Status read = co_await task;
//
// Loop only. Every read must end. Destroy this object only after all reads have ended.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/loop.h"
#include "core/result.h"
#include "core/task.h"

namespace holdfast::observe {

class SharedReads {
 public:
  // A read without an answer by `by` fails.
  using Read = std::function<Task<Result<>>(std::string subject, SteadyTime by)>;
  SharedReads(Loop& loop, Read read);
  ~SharedReads();

  // An error: nothing is known. Callers that share a read each keep their own `by`.
  Task<Result<>> ask(std::string subject, SteadyTime by);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::observe
