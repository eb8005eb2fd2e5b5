#include "operator/jobs/shard_selectors.h"

#include "client/kube/percent_encode.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::jobs {
namespace {

// In a request's line. API servers and proxies take 8 KB or more of a line.
constexpr std::size_t kMostBytes = 4096;

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
  const bool is_short = kube::percent_encode(fields).size() <= kMostBytes;
  return {"", is_short ? fields : requirement};
}

}  // namespace holdfast::jobs
