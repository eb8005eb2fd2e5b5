// Certificates for tests, made on the spot: nothing in the tree expires.
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
  // The common name is never looked at by a client of ours, so that it may say what it likes.
  KeyPair issue(const std::string& common_name, const std::vector<std::string>& names,
                Validity validity = {}) const;

 private:
  KeyPair self_;
};

}  // namespace holdfast::test
