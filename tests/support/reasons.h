// Reasons and orphan classes compared with the words that users see, and printed as these.
#pragma once

#include <ostream>
#include <string_view>

#include "api/reason.h"
#include "reconciler/orphan_class.h"

namespace holdfast::api {

inline bool operator==(const AnyReason& reason, std::string_view word) {
  return reason.text() == word;
}
inline void PrintTo(const AnyReason& reason, std::ostream* out) { *out << reason.text(); }

}  // namespace holdfast::api

namespace holdfast::reconciler {

inline bool operator==(OrphanClass orphan_class, std::string_view word) {
  return word == to_string(orphan_class);
}
inline void PrintTo(OrphanClass orphan_class, std::ostream* out) {
  *out << to_string(orphan_class);
}

}  // namespace holdfast::reconciler
