// status.outbox of a DurableJob.
#pragma once

#include "core/json_fwd.h"
#include "core/json_view.h"
#include "reconciler/types.h"

namespace holdfast::codecs {

// The entries in the order of their numbers, up to `decoded.notifications`. A stored object may be
// older than the schema: what is no event is left out. An event of a newer version is kept as it is
// (OutboxEntry::unknown).
void decode_outbox(const JsonView& status, reconciler::Status& decoded);
void encode_outbox(const reconciler::Status& status, Json& json);

}  // namespace holdfast::codecs
