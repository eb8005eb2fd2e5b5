// Which jobs belong to this replica, and until when it may act on them. Loop only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "client/kube/client.h"
#include "core/result.h"
#include "core/time.h"

namespace holdfast::controller {

class Ownership {
 public:
  virtual ~Ownership() = default;

  // The right to act on a job or a queue in one tenure of its shard. It ends with the tenure, even
  // if the shard comes back. `key` is reconciler::shard_key().
  struct Claim {
    int shard = 0;
    std::uint64_t tenure = 0;
  };

  // None: the job belongs to another replica, now or soon. Begin nothing.
  virtual std::optional<Claim> claim(const std::string& key) const = 0;

  // True if the claim is of the key's shard, whether or not it still holds.
  virtual bool covers(const Claim& claim, const std::string& key) const = 0;

  // What the pods of a job of this shard have as reconciler::kShardLabel.
  virtual std::string shard_label(int shard) const = 0;

  // True while work under the claim may go on. The shard is still held, and the last acknowledged
  // renewal was sent less than the renew deadline ago. Check this before every write.
  virtual bool holds(const Claim& claim) const = 0;

  // The time until the renew deadline; zero or less: it has passed. A request under a claim must
  // end within this time.
  virtual Duration time_left() const = 0;

  // Before each write: an error if the claim no longer holds. Else the request ends in time.
  std::optional<Error> may_write(const Claim& claim, kube::CallOptions& options) const {
    if (!holds(claim)) {
      return make_error(ErrorCode::kCancelled, "this replica no longer holds the shard");
    }
    options.timeout = std::min(options.timeout, time_left());
    return std::nullopt;
  }
};

}  // namespace holdfast::controller
