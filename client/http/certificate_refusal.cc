#include "client/http/certificate_refusal.h"

#include <utility>

#include "client/http/openssl_types.h"

namespace holdfast::http {
namespace {

constexpr std::size_t kMaxNamesBytes = 256;  // of the names that a message lists

struct Recorder {
  std::string host;
  std::shared_ptr<CertificateRefusal> refusal;
};

// "DNS:kubernetes, IP Address:10.96.0.1"; the common name does not count.
std::string names_of(X509* certificate) {
  const openssl::Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  const openssl::Bio text = openssl::writer();
  for (int i = 0; i < count; ++i) {
    if (i > 0) BIO_puts(text.get(), ", ");
    GENERAL_NAME_print(text.get(), sk_GENERAL_NAME_value(names.get(), i));
  }
  std::string result = openssl::text_of(text);
  if (result.size() > kMaxNamesBytes) result = result.substr(0, kMaxNamesBytes) + "...";
  return result;
}

std::string wrong_name(X509* certificate, const std::string& host) {
  const std::string names = names_of(certificate);
  if (names.empty()) {
    return "it has no subject alternative names, so none for \"" + host +
           "\"; the server needs one that has";
  }
  return "it has no name for \"" + host + "\", only " + names +
         "; put one of these into the server's URL, or set tls-server-name to it";
}

std::string unknown_issuer(X509* certificate, int error) {
  const openssl::Bio issuer = openssl::writer();
  X509_NAME_print_ex(issuer.get(), X509_get_issuer_name(certificate), 0, XN_FLAG_RFC2253);
  return "it was not signed by a CA that is trusted here (" +
         std::string(X509_verify_cert_error_string(error)) + ", issuer \"" +
         openssl::text_of(issuer) +
         "\"); certificate-authority or certificate-authority-data must hold the CA of this server";
}

std::string wrong_time(const char* what, const ASN1_TIME* time, int depth) {
  const openssl::Bio date = openssl::writer();
  ASN1_TIME_print(date.get(), time);
  return std::string(depth == 0 ? "it " : "a CA certificate of its chain ") + what + " " +
         openssl::text_of(date) + "; renew it, or set this machine's clock";
}

std::string explain(X509_STORE_CTX* verification, const std::string& host) {
  const int error = X509_STORE_CTX_get_error(verification);
  const int depth = X509_STORE_CTX_get_error_depth(verification);
  X509* const leaf = X509_STORE_CTX_get0_cert(verification);
  X509* const current = X509_STORE_CTX_get_current_cert(verification);
  if (leaf == nullptr) return "it did not send one";
  switch (error) {
    case X509_V_OK:  // OpenSSL accepted it; only cpprestsdk's check of the name comes after it
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return wrong_name(leaf, host);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return unknown_issuer(current == nullptr ? leaf : current, error);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return wrong_time("expired on", X509_get0_notAfter(current), depth);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return wrong_time("is not valid before", X509_get0_notBefore(current), depth);
    default:
      return X509_verify_cert_error_string(error);
  }
}

// Replaces OpenSSL's call of X509_verify_cert(), calls it, and records the result.
int verify(X509_STORE_CTX* verification, void* recorder_pointer) {
  const int verified = X509_verify_cert(verification);
  if (verified <= 0) {
    const Recorder& recorder = *static_cast<const Recorder*>(recorder_pointer);
    recorder.refusal->set(explain(verification, recorder.host));
  }
  return verified;
}

void free_recorder(void*, void* recorder, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<Recorder*>(recorder);
}

// The slot of a context in which it owns its recorder.
int recorder_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_recorder);
  return slot;
}

}  // namespace

void CertificateRefusal::set(std::string why) {
  MutexLock lock(mutex_);
  why_ = std::move(why);
}

std::string CertificateRefusal::last() const {
  MutexLock lock(mutex_);
  return why_;
}

void record_refusals(SSL_CTX* context, std::string host,
                     std::shared_ptr<CertificateRefusal> refusal) {
  auto recorder = std::make_unique<Recorder>(Recorder{std::move(host), std::move(refusal)});
  if (SSL_CTX_set_ex_data(context, recorder_slot(), recorder.get()) != 1) return;
  SSL_CTX_set_cert_verify_callback(context, verify, recorder.release());
}

}  // namespace holdfast::http
