// Writes of a controller that shares its objects with other replicas. Each replica holds some
// shards of them, and works under claims. A claim is the right to act on one shard in one tenure of
// it. The Gate knows which claims still hold. The Writer asks it right before each request, and no
// request outlives its claim.
//
//   auto put = writer.put(claim, path, body, {.answer_with_metadata = true});
//   const Result<JsonDocument> answer = co_await put;  // kCancelled: the claim holds no longer
//
// Loop only. The client and the gate outlive the Writer, and the Writer outlives its tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/kube/client.h"
#include "core/json_view.h"
#include "core/result.h"
#include "core/task.h"
#include "core/time.h"

namespace holdfast::controller {

class Gate {
 public:
  // It ends with the tenure, even if the shard comes back.
  struct Claim {
    int shard = 0;
    std::uint64_t tenure = 0;
  };
  virtual ~Gate() = default;

  // True while work under the claim may go on. Check this before every write.
  virtual bool holds(const Claim& claim) const = 0;

  // The time until all claims end by themselves; zero or less: it has passed. A request under a
  // claim must end within this time.
  virtual Duration time_left() const = 0;

  // kCancelled: the claim holds no longer.
  std::optional<Error> may_write(const Claim& claim) const;

  // The same options, for a request that ends in time.
  kube::CallOptions in_time(kube::CallOptions options = {}) const;

  // Both: an error, or options that end in time.
  std::optional<Error> may_write(const Claim& claim, kube::CallOptions& options) const;
};

class Writer {
 public:
  Writer(kube::Client& client, const Gate& gate) : client_(client), gate_(gate) {}

  // As the client's calls of the same names.
  using Answer = Task<Result<JsonDocument>>;
  Answer post(Gate::Claim claim, std::string path, std::string body,
              kube::CallOptions options = {});
  Answer put(Gate::Claim claim, std::string path, std::string body, kube::CallOptions options = {});
  Answer patch(Gate::Claim claim, std::string path, std::string body, kube::CallOptions options);
  // `body`: see preconditions().
  Answer del(Gate::Claim claim, std::string path, std::string body, kube::CallOptions options = {});

 private:
  using Call = Task<Result<JsonDocument>> (kube::Client::*)(std::string, std::string,
                                                            const kube::CallOptions&);
  Answer send(Call call, Gate::Claim claim, std::string path, std::string body,
              kube::CallOptions options);

  kube::Client& client_;
  const Gate& gate_;
};

// The body of a DELETE of exactly this object. `version`: none: at any. `grace`: of a pod, in
// seconds; none: its own.
std::string preconditions(const std::string& uid, std::optional<std::uint64_t> version,
                          std::optional<int> grace = std::nullopt);

}  // namespace holdfast::controller
