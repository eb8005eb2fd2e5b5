#include "client/http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "client/http/endpoint.h"
#include "client/http/openssl_types.h"

namespace holdfast::http {
namespace {

using openssl::Bio;
using openssl::Certificate;
using openssl::Context;
using openssl::Key;
using openssl::reader;
using openssl::Store;

Error invalid_pem(std::string message) {
  ERR_clear_error();
  return make_error(ErrorCode::kInvalid, std::move(message));
}

// An encrypted key has no password here; OpenSSL's own callback would ask the terminal for it.
int no_password(char*, int, int, void*) { return 0; }

Certificate next_certificate(BIO* bio) {
  return Certificate(PEM_read_bio_X509(bio, nullptr, no_password, nullptr));
}

// True when the last read failed because the text had ended.
bool at_end() { return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE; }

Result<> trust(X509_STORE* store, const std::string& ca) {
  const Bio bio = reader(ca);
  int count = 0;
  while (const Certificate certificate = next_certificate(bio.get())) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) {
      return invalid_pem("a CA certificate cannot be used");
    }
    ++count;
  }
  if (count == 0 || !at_end()) return invalid_pem("the CA is not a list of PEM certificates");
  ERR_clear_error();
  // A trusted certificate ends the chain even if it is not self-signed, as in Go.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return Unit{};
}

Result<> trust_only(SSL_CTX* context, const std::string& ca) {
  Store store(X509_STORE_new());
  Result<> trusted = trust(store.get(), ca);
  if (trusted.ok()) SSL_CTX_set_cert_store(context, store.release());
  return trusted;
}

Result<> present(SSL_CTX* context, const TlsConfig& tls) {
  if (tls.client_certificate.empty() || tls.client_key.empty()) {
    return invalid_pem("a client certificate and its key must come together");
  }
  const Bio certificates = reader(tls.client_certificate);
  const Certificate leaf = next_certificate(certificates.get());
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return invalid_pem("the client certificate is not a PEM certificate");
  }
  while (const Certificate intermediate = next_certificate(certificates.get())) {
    if (SSL_CTX_add1_chain_cert(context, intermediate.get()) != 1) {
      return invalid_pem("an intermediate client certificate cannot be used");
    }
  }
  if (!at_end()) return invalid_pem("the client certificate has a malformed part");
  ERR_clear_error();
  const Bio key_text = reader(tls.client_key);
  const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_password, nullptr));
  if (!key) return invalid_pem("the client key is not a PEM private key without a password");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return invalid_pem("the client key does not belong to the client certificate");
  }
  return Unit{};
}

Result<> expect_host(SSL_CTX* context, const std::string& host) {
  X509_VERIFY_PARAM* const parameters = SSL_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_hostflags(
      parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const int set = is_ip_literal(host)
                      ? X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str())
                      : X509_VERIFY_PARAM_set1_host(parameters, host.data(), host.size());
  if (set != 1) return invalid_pem("\"" + host + "\" is no name that a certificate can carry");
  return Unit{};
}

}  // namespace

Result<> apply_tls(SSL_CTX* context, const TlsConfig& tls, const std::string& host) {
  ERR_clear_error();
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
    return invalid_pem("TLS 1.2 is not available");
  }
  if (!tls.ca.empty()) {
    const Result<> trusted = trust_only(context, tls.ca);
    if (!trusted.ok()) return trusted;
  } else if (X509_STORE_set_default_paths(SSL_CTX_get_cert_store(context)) != 1) {
    return invalid_pem("the system's CAs cannot be read");
  }
  if (!tls.client_certificate.empty() || !tls.client_key.empty()) {
    const Result<> presented = present(context, tls);
    if (!presented.ok()) return presented;
  }
  return tls.insecure_skip_verify ? Result<>(Unit{}) : expect_host(context, host);
}

Result<> trust_too(SSL_CTX* context, const std::string& ca) {
  return ca.empty() ? Result<>(Unit{}) : trust(SSL_CTX_get_cert_store(context), ca);
}

Result<> validate_tls(const TlsConfig& tls) {
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (!context) return invalid_pem("OpenSSL gives no context");
  return apply_tls(context.get(), tls, tls.server_name.empty() ? "host" : tls.server_name);
}

}  // namespace holdfast::http
