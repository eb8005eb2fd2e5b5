// Certificates for tests, made on the spot: nothing in the tree expires.
#pragma once

#include <string>
#include <vector>

namespace holdfast::test {

struct KeyPair {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name);

  const std::string& certificate() const { return self_.certificate; }

  // `names` are subject alternative names as OpenSSL writes them: "DNS:localhost", "IP:127.0.0.1".
  // The common name is never looked at by a client of ours, so that it may say what it likes.
  KeyPair issue(const std::string& common_name, const std::vector<std::string>& names) const;

 private:
  KeyPair self_;
};

}  // namespace holdfast::test
