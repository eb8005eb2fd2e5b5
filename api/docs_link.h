// Links into the documentation of this version, for texts that people read at night: the page of
// `explain` and the notes of Events. docs/reasons.md has a heading for each reason.
//
//   reason_link("NodeSilent")   // https://holdfast.dev/docs/v0.1.0/reasons.html#nodesilent
//
// Pure. The chart builds the same address for runbook_url (templates/prometheusrule.yaml).
#pragma once

#include <string>
#include <string_view>

namespace holdfast::api {

// Where the pages of this version are, without a slash at the end.
extern const std::string_view kDocs;

std::string reason_link(std::string_view reason);
// The text and the link of its reason, if both together have fewer than `limit` bytes; else the
// text alone.
std::string with_reason_link(std::string text, std::string_view reason, std::size_t limit);
// The text before such a link, of any version.
std::string_view without_reason_link(std::string_view text);

}  // namespace holdfast::api
