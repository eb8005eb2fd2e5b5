#include "tests/support/certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <stdexcept>

#include "client/http/openssl_types.h"

namespace holdfast::test {
namespace {

using http::openssl::Bio;
using http::openssl::Certificate;
using http::openssl::Extension;
using http::openssl::Key;
using http::openssl::reader;
using http::openssl::text_of;
using http::openssl::writer;

void require(bool holds) {
  if (!holds) throw std::runtime_error("OpenSSL cannot make a certificate");
}

void extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  require(extension && X509_add_ext(certificate, extension.get(), -1) == 1);
}

Certificate make_certificate(const std::string& common_name, EVP_PKEY* key, X509* issuer,
                             Validity validity) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  std::int64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate.get()), serial & 0x7fffffffffffffff);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), validity.begins.count());
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), validity.ends.count());
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate.get(), issuer == nullptr ? name : X509_get_subject_name(issuer));
  require(X509_set_pubkey(certificate.get(), key) == 1);
  return certificate;
}

KeyPair to_pem(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_text = writer(), key_text = writer();
  require(PEM_write_bio_X509(certificate_text.get(), certificate) == 1);
  require(PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) ==
          1);
  return {text_of(certificate_text), text_of(key_text)};
}

}  // namespace

CertificateAuthority::CertificateAuthority(const std::string& name) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = make_certificate(name, key.get(), nullptr, {});
  extend(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  extend(certificate.get(), certificate.get(), NID_key_usage, "critical,keyCertSign");
  require(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  self_ = to_pem(certificate.get(), key.get());
}

KeyPair CertificateAuthority::issue(const std::string& common_name,
                                    const std::vector<std::string>& names,
                                    Validity validity) const {
  const Bio issuer_text = reader(self_.certificate);
  const Bio issuer_key_text = reader(self_.key);
  const Certificate issuer(PEM_read_bio_X509(issuer_text.get(), nullptr, nullptr, nullptr));
  const Key issuer_key(PEM_read_bio_PrivateKey(issuer_key_text.get(), nullptr, nullptr, nullptr));
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = make_certificate(common_name, key.get(), issuer.get(), validity);
  std::string alternatives;
  for (const std::string& name : names) alternatives += (alternatives.empty() ? "" : ",") + name;
  if (!alternatives.empty()) {
    extend(certificate.get(), issuer.get(), NID_subject_alt_name, alternatives);
  }
  require(X509_sign(certificate.get(), issuer_key.get(), EVP_sha256()) > 0);
  return to_pem(certificate.get(), key.get());
}

}  // namespace holdfast::test
