// The guard: the rules to which the API server holds everybody who writes a DurableJob, the
// operator too, beside what its CRD says (docs/guarantees.md, The guard). They are policies
// (ValidatingAdmissionPolicy), which somebody may delete or change. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/json_view.h"

namespace holdfast::codecs {

// One of its objects, as this version ships it.
struct GuardObject {
  const char* resource;  // plural
  const char* name;
  const char* spec;  // as JSON, with all defaults of the API server
};
std::span<const GuardObject> guard_objects();

// Compares `found`, which the API server has under this name, with what was shipped. Returns the end
// of a sentence that says what is wrong; empty: nothing. `version`: of this operator. A later version's chart may have other rules and
// match more, so that the replicas go on during an upgrade. Its annotation holdfast.dev/version says
// so, and is believed.
std::string guard_fault(const GuardObject& shipped, const JsonView& found,
                        std::string_view version);

// The API server's refusal of a write of spec or metadata says that one of the guard's rules is not
// met. The same write is refused each time. False also if the rule could not be evaluated.
bool is_guard_refusal(std::string_view message);

}  // namespace holdfast::codecs
