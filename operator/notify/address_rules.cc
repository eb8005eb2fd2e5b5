#include "operator/notify/address_rules.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace holdfast::notify {
namespace {

constexpr int kBits = 128;
constexpr int kBitsOfV4 = 96;  // the prefix ::ffff:0:0/96 of all IPv4 addresses

Error no_range(const std::string& text) {
  return make_error(ErrorCode::kInvalid,
                    "\"" + text + "\" is not a range of addresses: give one like 10.0.0.0/8");
}

// What IANA's registries of special-purpose addresses call not globally reachable, and ranges that
// lead to IPv4 addresses by another name.
const std::vector<Range>& special_ranges() {
  static const auto* const ranges = [] {
    auto* const all = new std::vector<Range>;
    for (const char* const text :
         {"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
          "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
          "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
          // All of IPv6 but 2000::/3, which is the global unicast.
          "::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"}) {
      all->push_back(*parse_range(text));
    }
    return all;
  }();
  return *ranges;
}

bool is_v4(const Address& address) {
  static const Range kV4 = *parse_range("0.0.0.0/0");
  return is_in(kV4, address);
}

}  // namespace

Result<Address> parse_address(const std::string& text) {
  Address address{};
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  std::array<unsigned char, 4> v4{};
  if (inet_pton(AF_INET, text.c_str(), v4.data()) != 1) {
    return make_error(ErrorCode::kInvalid, "\"" + text + "\" is not an IP address");
  }
  address.fill(0);
  address[10] = address[11] = 0xff;
  std::copy(v4.begin(), v4.end(), address.begin() + 12);
  return address;
}

Result<Range> parse_range(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return no_range(text);
  const Result<Address> base = parse_address(text.substr(0, slash));
  Range range;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, range.bits);
  if (!base.ok() || error != std::errc() || rest != end || range.bits < 0) return no_range(text);
  range.base = *base;
  if (text.find(':') == std::string::npos) range.bits += kBitsOfV4;
  if (range.bits > kBits) return no_range(text);
  return range;
}

bool is_in(const Range& range, const Address& address) {
  for (int bit = 0; bit < range.bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const int mask = 0x80 >> (bit % 8);
    if ((range.base[byte] & mask) != (address[byte] & mask)) return false;
  }
  return true;
}

bool may_connect(const Address& address, const std::vector<Range>& allowed) {
  const auto contains = [&](const Range& range) { return is_in(range, address); };
  if (std::any_of(allowed.begin(), allowed.end(), contains)) return true;
  const auto& special = special_ranges();
  return std::none_of(special.begin(), special.end(), [&](const Range& range) {
    // ::/3 contains the IPv4 addresses, which have ranges of their own.
    const bool is_of_v6 = range.bits < kBitsOfV4;
    return (!is_of_v6 || !is_v4(address)) && is_in(range, address);
  });
}

}  // namespace holdfast::notify
