#include "reconciler/orphan_class.h"

#include <array>
#include <cstddef>

namespace holdfast::reconciler {
namespace {

// In the order of the enumeration.
constexpr std::array kOrphanClasses = {
    "",
    "intent_without_pod",
    "pod_never_started",
    "pod_vanished",
    "pod_disrupted",
    "node_gone",
    "node_silent",
    "pod_stuck_terminating",
    "holder_silent",
    "holder_hung",
    "attempt_too_long",
    "cancel_dead_worker",
};
static_assert(kOrphanClasses.size() == static_cast<std::size_t>(kLastOrphanClass) + 1);

}  // namespace

const char* to_string(OrphanClass orphan_class) {
  return kOrphanClasses[static_cast<std::size_t>(orphan_class)];
}

}  // namespace holdfast::reconciler
