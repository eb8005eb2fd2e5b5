// What the benchmarks put on an API server, by the operator's own client library: cheaper than any
// script, so that what is measured has the machine to itself.
#pragma once

#include <string>

#include "client/kube/client.h"
#include "core/task.h"

namespace holdfast::bench {

struct SendOptions {
  // A JSON array of {method, path, type, body}, sent one after the other. In paths and bodies $N is
  // the chain's number, $UID the UID in the first answer, $VERSION the version in the last answer
  // that was about that object.
  std::string chain;
  int first = 0;
  int count = 1;
  int in_flight = 16;
  // All chains send their first request, then all their second, and so on. Before each step the
  // program prints "ready" and waits for a line of its standard input.
  bool by_step = false;
};
// Sends `count` chains, so many at a time; tells the outcome as JSON.
Task<Result<Json>> send(kube::Client& client, SendOptions options);

struct FinishOptions {
  std::string namespace_;
  int count = 1;
};
// Plays scheduler and kubelet for so many pods: each is Succeeded as soon as it is seen.
Task<Result<Json>> finish(kube::Client& client, FinishOptions options);

}  // namespace holdfast::bench
