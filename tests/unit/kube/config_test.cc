#include "client/kube/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "client/kube/kubeconfig.h"
#include "tests/unit/kube/memory_files.h"

namespace holdfast::kube {
namespace {

using testing::HasSubstr;

constexpr const char* kAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

class ConfigTest : public testing::Test {
 protected:
  Result<ClusterConfig> load(const std::string& kubeconfig = "", const std::string& context = "") {
    return load_config({kubeconfig, context, files_,
                        [this](const std::string& name) { return environment_[name]; }});
  }

  void write_kubeconfig(const std::string& path, const std::string& server) {
    files_.files[path] =
        "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: '" +
        server + "'}}]";
  }

  void write_service_account() {
    environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
    environment_["KUBERNETES_SERVICE_PORT"] = "443";
    files_.files[std::string(kAccount) + "token"] = "abc";
    files_.files[std::string(kAccount) + "ca.crt"] = "PEM";
    files_.files[std::string(kAccount) + "namespace"] = "holdfast-system\n";
  }

  test::MemoryFiles files_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ConfigTest, TheFlagGoesBeforeEverything) {
  write_kubeconfig("/flag", "https://flag");
  write_kubeconfig("/env", "https://env");
  environment_["KUBECONFIG"] = "/env";
  write_service_account();
  const Result<ClusterConfig> config = load("/flag");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->server, "https://flag");
}

TEST_F(ConfigTest, KubeconfigGoesBeforeTheServiceAccount) {
  write_kubeconfig("/env", "https://env");
  environment_["KUBECONFIG"] = "/env";
  write_service_account();
  ASSERT_TRUE(load().ok());
  EXPECT_EQ(load()->server, "https://env");
}

TEST_F(ConfigTest, TheServiceAccountGoesBeforeTheHomeFolder) {
  write_kubeconfig("/home/me/.kube/config", "https://home");
  environment_["HOME"] = "/home/me";
  ASSERT_TRUE(load().ok());
  EXPECT_EQ(load()->server, "https://home");
  write_service_account();
  ASSERT_TRUE(load().ok());
  EXPECT_EQ(load()->server, "https://10.0.0.1:443");
}

TEST_F(ConfigTest, FilesOfAListMayBeMissingButNotAll) {
  write_kubeconfig("/b", "https://b");
  environment_["KUBECONFIG"] = "/a::/b:";
  ASSERT_TRUE(load().ok());
  EXPECT_EQ(load()->server, "https://b");
  environment_["KUBECONFIG"] = "/a:/c";
  const Result<ClusterConfig> config = load();
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().message, "KUBECONFIG names /a:/c, but there is no such file");
}

TEST_F(ConfigTest, AFileThatCannotBeReadIsNotPassedOver) {
  write_kubeconfig("/a", "https://a");
  write_kubeconfig("/b", "https://b");
  files_.broken["/a"] = true;
  const Result<ClusterConfig> config = load("/a:/b");
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("/a: I/O error"));
}

TEST_F(ConfigTest, AHugeFileIsRefused) {
  files_.files["/a"] = std::string(kMaxKubeconfigBytes + 1, '#');
  EXPECT_FALSE(load("/a").ok());
}

TEST_F(ConfigTest, InAPodTokenCaAndNamespaceAreTheServiceAccounts) {
  write_service_account();
  const Result<ClusterConfig> config = load();
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->origin, "in-cluster");
  EXPECT_EQ(config->token_file, std::string(kAccount) + "token");
  EXPECT_EQ(config->ca_file, std::string(kAccount) + "ca.crt");
  EXPECT_EQ(config->namespace_, "holdfast-system");
}

// The cluster's DNS may be down.
TEST_F(ConfigTest, InAPodWithIpv6TheServersAddressIsUsed) {
  write_service_account();
  environment_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  ASSERT_TRUE(load().ok());
  EXPECT_EQ(load()->server, "https://[fd00::1]:443");
}

TEST_F(ConfigTest, InAPodWithoutATokenTheMessageSaysWhatToDo) {
  write_service_account();
  files_.files.erase(std::string(kAccount) + "token");
  const Result<ClusterConfig> config = load();
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("automountServiceAccountToken: true"));
}

TEST_F(ConfigTest, InAPodANamespaceFileThatIsMissingMeansDefault) {
  write_service_account();
  files_.files.erase(std::string(kAccount) + "namespace");
  ASSERT_TRUE(load().ok());
  EXPECT_EQ(load()->namespace_, "default");
}

TEST_F(ConfigTest, AContextIsLookedForInKubeconfigsAlone) {
  write_service_account();
  write_kubeconfig("/home/me/.kube/config", "https://home");
  environment_["HOME"] = "/home/me";
  ASSERT_TRUE(load("", "a").ok());
  EXPECT_EQ(load("", "a")->server, "https://home");
}

TEST_F(ConfigTest, WithNothingToGoByTheMessageNamesAllWays) {
  environment_["HOME"] = "/home/me";
  const Result<ClusterConfig> config = load();
  ASSERT_FALSE(config.ok());
  for (const char* const way :
       {"--kubeconfig", "KUBECONFIG", "service account", "~/.kube/config"}) {
    EXPECT_THAT(config.error().message, HasSubstr(way));
  }
}

TEST_F(ConfigTest, TlsTextsComeFromFilesOrData) {
  ClusterConfig config;
  config.ca_file = "/ca";
  config.certificate_data = "cert";
  config.key_file = "/key";
  config.server_name = "name";
  files_.files = {{"/ca", "CA"}, {"/key", "KEY"}};
  const Result<http::TlsConfig> tls = load_tls(config, files_);
  ASSERT_TRUE(tls.ok());
  EXPECT_EQ(tls->ca, "CA");
  EXPECT_EQ(tls->client_certificate, "cert");
  EXPECT_EQ(tls->client_key, "KEY");
  EXPECT_EQ(tls->server_name, "name");
  EXPECT_FALSE(tls->insecure_skip_verify);
}

TEST_F(ConfigTest, AnEmptyOrMissingTlsFileIsAnErrorAndNotNoCertificate) {
  ClusterConfig config;
  config.ca_file = "/ca";
  EXPECT_FALSE(load_tls(config, files_).ok());
  files_.files["/ca"] = "";
  EXPECT_FALSE(load_tls(config, files_).ok());
}

}  // namespace
}  // namespace holdfast::kube
