// The token bucket of a queue's rate. The queue's status records it, so a new owner goes on from it
// and neither bursts nor stalls. Pure.
#pragma once

#include <optional>

#include "reconciler/queue/queue.h"

namespace holdfast::reconciler {

// The tokens at `now`. No record: the bucket is full. A record from the future is an edit, or the
// clock's: it counts from now.
Tokens refill(const std::optional<Tokens>& recorded, const Rate& rate, Time now);

// When the bucket gets its next token.
Time next_token(const Tokens& tokens, const Rate& rate);

}  // namespace holdfast::reconciler
