// The parts of an object that this version of the operator does not know. A newer version wrote it,
// before a roll-back or during an upgrade: docs/compatibility.md. The fields of this version are
// those of its own CRDs (crd_fields.inc), so a new one cannot be forgotten. Pure.
//
// A pod template is passed on as it is: the API server knows its fields.
#pragma once

#include <cstddef>
#include <string>

#include "core/json_fwd.h"
#include "core/json_view.h"

namespace holdfast::codecs {

enum class KnownKind { kDurableJob, kJobQueue, kWorkerPool };

// Names the fields of the spec that this version does not know. It also names known fields with an
// unknown value: a word outside the list, or a number beyond the limits. For people, with their
// paths: "spec.gang, spec.stages[2].when: Never". At most kUnknownNamesLimit bytes. Empty: none.
std::string unknown_in_spec(KnownKind kind, const JsonView& spec);
inline constexpr std::size_t kUnknownNamesLimit = 512;

// The same of a status, with the values, as one text. Empty: none. Parts beyond kUnknownStatusLimit
// bytes are left out: the runs' part first.
std::string unknown_in_status(KnownKind kind, const JsonView& status);
// Some 130 bytes for each of 1,000 runs. With what this version writes, a stored job stays below
// the 1.5 MiB of etcd.
inline constexpr std::size_t kUnknownStatusLimit = std::size_t{128} * 1024;

// Texts that go back to the API server as they came, with a status.
struct SharedTexts {
  std::string metadata;  // shared_metadata() (job_codec.h)
  std::string unknown;   // unknown_in_status()

  std::size_t size() const { return metadata.size() + unknown.size(); }
};

// Writes it back into the status that follows, as it was. It goes into the same condition, event,
// entry of history and stage, a run of the same attempt, and a `waiting` of the same reason. An
// unknown word comes back unless the operator has changed the word that it took it for.
void put_back_unknown(const std::string& unknown, Json& status);

}  // namespace holdfast::codecs
