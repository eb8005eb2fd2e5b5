// Whether the API server answers: asked each 10 s by whichever screen asks first, for all of them.
//
// A network that swallows packets breaks no connection: the watch of the jobs finds out after
// minutes. The page must not look current for so long.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/result.h"
#include "core/thread_annotations.h"
#include "core/time.h"

namespace holdfast::plugin {

class Pulse {
 public:
  // One short request, which takes at most that long. Returns its error, if any.
  using Ask = std::function<std::optional<Error>(Duration at_most)>;
  struct Clocks {
    std::function<Time()> server;        // of the API server
    std::function<SteadyTime()> steady;  // of this machine
  };
  Pulse(Ask ask, Clocks clocks);

  // Why nothing may be current; empty: the server answered lately. The caller that asks waits for
  // the answer, the others do not. Any thread.
  std::string trouble();
  // The same as far as it is known, without asking.
  std::string known() const;
  // When it answered last.
  Time heard() const;

 private:
  const Ask ask_;
  const Clocks clocks_;
  mutable Mutex mutex_;
  bool asks_ HOLDFAST_GUARDED_BY(mutex_) = false;
  SteadyTime began_ HOLDFAST_GUARDED_BY(mutex_);  // the last question
  std::string trouble_ HOLDFAST_GUARDED_BY(mutex_);
  Time heard_ HOLDFAST_GUARDED_BY(mutex_);
};

}  // namespace holdfast::plugin
