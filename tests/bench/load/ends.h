// Waits for DurableJobs of one namespace to end. Needs a watch, and no request for each job.
//
//   Ends ends(client, "work");
//   auto open = ends.open();
//   co_await open;
//   auto end = ends.of("job-7");
//   co_await end;          // false: the watch has ended
//   ends.close();
#pragma once

#include <memory>
#include <string>

#include "client/kube/client.h"
#include "core/task.h"

namespace holdfast::bench {

class Ends {
 public:
  Ends(kube::Client& client, std::string namespace_);

  // False: the namespace cannot be watched.
  Task<bool> open();
  Task<bool> of(std::string name);
  // After one of them was false: why.
  const std::string& error() const;
  void close();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace holdfast::bench
