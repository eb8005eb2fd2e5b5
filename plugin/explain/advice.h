// What each reason means, and what a person can do about it. docs/reasons.md says the same
// at more length.
//
//   const Advice& advice = advice_on(Reason::kQueued);
//
// Texts and commands have gaps, such as {job} (gaps.h).
#pragma once

#include <array>
#include <string_view>

#include "reconciler/api.h"

namespace holdfast::plugin {

struct Advice {
  const char* means;  // a clause: "no node fits the pod"
  const char* act;    // sentences for a person; "" only for ends that need nobody
  // Shell commands that help, most useful first; null: none. Each can be pasted as it stands.
  std::array<const char*, 2> commands = {nullptr, nullptr};
};

const Advice& advice_on(reconciler::Reason reason);

// The same for one of our reasons, for a kubelet's word ("ImagePullBackOff", "OOMKilled"), and for
// any other word.
const Advice& advice_on(const reconciler::AnyReason& reason);

// The heading of docs/reasons.md that says more about such a reason. Empty: there is none.
std::string_view heading_of(std::string_view reason);

}  // namespace holdfast::plugin
