// What may be written at all: the API server's rules on a status, as the CRD has them, and the
// shape that every decision keeps whatever the view.
#pragma once

#include <string>

#include "reconciler/decide.h"

namespace holdfast::reconciler::testing {

// The transition table of the CRD.
bool legal_edge(Phase from, Phase to);

// Why the API server would refuse this status; empty: it takes it.
std::string refused_by_api(const Status& old, const Status& next);

// Which rule this decision breaks; empty: none.
std::string broken_by(const JobView& view, const Decision& decision, Time now);

}  // namespace holdfast::reconciler::testing
