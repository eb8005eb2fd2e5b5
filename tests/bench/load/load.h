// The load that the benchmarks put on an API server. It uses the operator's own client library.
// That costs less than any script, so the measured programs have the machine to themselves.
#pragma once

#include <string>

#include "client/kube/client.h"
#include "core/json.h"
#include "core/task.h"

namespace holdfast::bench {

struct SendOptions {
  // A JSON array of {method, path, type, body}, sent one after the other. Paths and bodies may
  // contain $N (the chain's number) and $UID (the UID in the first answer). They may also contain
  // $VERSION (the version in the object's last answer).
  std::string chain;
  int first = 0;
  int count = 1;
  int in_flight = 16;
  // All chains send their first request, then all their second, and so on. Before each step the
  // program prints "ready" and waits for a line of its standard input.
  bool by_step = false;
  // The namespace of the chains' DurableJobs: a chain counts as in flight until its job `job-$N`
  // has ended. Empty: until its last answer.
  std::string until_ended;
};
// Sends `count` chains, a limited number at a time. Prints the outcome as JSON.
Task<Result<Json>> send(kube::Client& client, SendOptions options);

struct FinishOptions {
  std::string namespace_;
  int count = 1;
};
// Plays scheduler and kubelet for so many pods: each becomes Succeeded as soon as it is seen.
Task<Result<Json>> finish(kube::Client& client, FinishOptions options);

}  // namespace holdfast::bench
