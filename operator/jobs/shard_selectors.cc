#include "operator/jobs/shard_selectors.h"

#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::jobs {
namespace {

// API servers take a request's line of 1 MB, and proxies one of 8 KB or more. The rest is for the
// path and the other parameters.
constexpr std::size_t kMostBytes = 7168;

// With `before` before each.
std::string others(const std::string& before, const std::set<int>& selected, int shards) {
  std::string text;
  for (int shard = 0; shard < shards; ++shard) {
    if (selected.count(shard) == 0) text += before + reconciler::shard_label(shard, shards);
  }
  return text;
}

}  // namespace

// `notin` also selects what has no such label.
cache::Selector by_shard_label(const std::set<int>& selected, int shards) {
  const std::string ours = reconciler::kJobUidLabel;
  const std::string left_out = others(",", selected, shards);
  if (left_out.empty()) return {ours, ""};
  return {ours + "," + reconciler::kShardLabel + " notin (" + left_out.substr(1) + ")", ""};
}

// An absent field differs from each shard.
cache::Selector by_job_shard(const std::string& requirement, const std::set<int>& selected,
                             int shards) {
  const std::string fields = requirement + others(",status.shard!=", selected, shards);
  // An API server that does not know the field says so. No shard has this name.
  const bool names_it = fields != requirement && fields.size() <= kMostBytes;
  return {"", names_it ? fields : requirement + ",status.shard!=none"};
}

}  // namespace holdfast::jobs
