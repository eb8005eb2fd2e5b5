// Texts that others wrote, made fit to be shown: in an annotation, in a line on stderr, in a pod's
// termination message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::agent {

// One line of UTF-8 of at most `limit` bytes: what is not UTF-8 becomes U+FFFD, control characters
// and line breaks become spaces, spaces at both ends go.
std::string clean_text(std::string_view text, std::size_t limit);

}  // namespace holdfast::agent
