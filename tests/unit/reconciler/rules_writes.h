// The rules on the single writes of a decision. Each function names the rule that is broken; empty:
// none. `next` is the status after the decision. Internal to rules*.cc.
#pragma once

#include <string>

#include "reconciler/job/decide.h"

namespace holdfast::reconciler::testing {

// The status is written first. The old pod of a run is deleted before its new one is created.
std::string broken_order(const JobView& view, const Decision& decision, const Status& next);
std::string broken_pod_write(const JobView& view, const Decision& decision, const Status& next);
// The attempts whose places are slots of workers.
std::string broken_places(const JobView& view, const Decision& decision, const Status& next);
std::string broken_status_write(const JobView& view, const WriteStatus& write);

}  // namespace holdfast::reconciler::testing
