// Which jobs belong to this replica. The Gate says until when it may act on them. Loop only.
#pragma once

#include <optional>
#include <string>

#include "client/controller/writer.h"

namespace holdfast::membership {

class Ownership : public controller::Gate {
 public:
  // None: the job belongs to another replica, now or soon. Begin nothing. `key` is
  // reconciler::shard_key().
  virtual std::optional<Claim> claim(const std::string& key) const = 0;

  // True if the claim is of the key's shard, whether or not it still holds.
  virtual bool covers(const Claim& claim, const std::string& key) const = 0;

  // What the pods of a job of this shard have as reconciler::kShardLabel.
  virtual std::string shard_label(int shard) const = 0;
};

}  // namespace holdfast::membership
