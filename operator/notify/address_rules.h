// Which addresses a target may have. A name resolves to whatever its owner wants. Without these
// rules a target could make the operator talk to the cloud's metadata service, its own node, or the
// cluster's private network. Pure.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/result.h"

namespace holdfast::notify {

// An IPv6 address, or an IPv4 address as ::ffff:a.b.c.d.
using Address = std::array<unsigned char, 16>;
// kInvalid: the text is no address.
Result<Address> parse_address(const std::string& text);

struct Range {
  Address base{};
  int bits = 0;  // of 128
};
// "10.0.0.0/8", "fd00::/8". kInvalid: the text is no range.
Result<Range> parse_range(const std::string& text);
bool is_in(const Range& range, const Address& address);

// True for the addresses of the public internet, and for those in `allowed`.
bool may_connect(const Address& address, const std::vector<Range>& allowed);

}  // namespace holdfast::notify
