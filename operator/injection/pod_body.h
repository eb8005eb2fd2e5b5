// The pod of an attempt, as it is created. Pure.
#pragma once

#include <string>

#include "core/json_fwd.h"
#include "core/result.h"
#include "reconciler/job/decide.h"
#include "reconciler/types.h"

namespace holdfast::injection {

// The body of the POST of an attempt's pod. It is the template with our labels, owner reference and
// finalizer. Every container starts its environment with the HOLDFAST_ variables, so that the
// template's own variables can refer to them. It prefers nodes other than `pod.avoid`. With
// `heartbeat` it also has the agent from `agent_image`. `shard_label`: reconciler::shard_label().
Result<std::string> pod_body(const reconciler::Job& job, const std::string& pod_template,
                             const reconciler::CreatePod& pod, const std::string& agent_image,
                             const std::string& shard_label);

// Asks the scheduler to prefer any node but these for a pod with these labels and this spec. It is
// a wish and no demand: where no other node fits, or the only one is back, the pod still runs. A
// scheduler counts preferences in shares of their sum. So this one weighs twice as much as all node
// preferences of the template together, up to 1,000, and these still tell the other nodes apart. No
// pod of a Kueue pod group has it.
void prefer_other_nodes(const std::vector<std::string>& avoid, const Json& labels, Json& spec);

// The labels or annotations of a template, but for those under holdfast.dev/.
Json without_our_keys(const Json& map);
// The finalizers of a template, as batch/v1 puts them on pods, but for those under holdfast.dev/.
Json finalizers_of(const Json& template_metadata);

// The body of a PodTemplate with that pod's content. The API server checks it like a pod, but calls
// no webhooks for pods.
std::string bare_template_body(const std::string& pod_body);

}  // namespace holdfast::injection
