// A JobQueue (api/queue.h) under the names that the rules use.
#pragma once

#include "api/queue.h"
#include "reconciler/api.h"

namespace holdfast::reconciler {

using api::Admission;
using api::kAdmissionLimit;
using api::kHeadLimit;
using api::QueueSpec;
using api::QueueStatus;
using api::Rate;
using api::Tokens;

}  // namespace holdfast::reconciler
