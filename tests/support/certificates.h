// Certificates for tests, made at run time, so that none in the tree can expire.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::test {

struct KeyPair {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

// Both from now.
struct Validity {
  std::chrono::seconds begins = std::chrono::hours(-1);
  std::chrono::seconds ends = std::chrono::hours(1);
};

class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name);

  const std::string& certificate() const { return self_.certificate; }

  // `names` are subject alternative names as OpenSSL writes them: "DNS:localhost", "IP:127.0.0.1".
  // Our clients ignore the common name, so it may be anything.
  KeyPair issue(const std::string& common_name, const std::vector<std::string>& names,
                Validity validity = {}) const;

 private:
  KeyPair self_;
};

}  // namespace holdfast::test
