#include "client/kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

// A kubeconfig with one context, its cluster and user with what a test adds.
std::string kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
         "contexts:\n- name: here\n  context: {cluster: c, user: u, namespace: jobs}\n"
         "clusters:\n- name: c\n  cluster: {server: 'https://api:6443'" +
         cluster +
         "}\n"
         "users:\n- name: u\n  user: {" +
         user + "}\n";
}

Result<ClusterConfig> select(const std::string& text, const std::string& context = "",
                             const std::string& path = "/home/me/.kube/config") {
  const Result<Kubeconfig> file = parse_kubeconfig(path, text);
  if (!file.ok()) return file.error();
  return select_context({*file}, context);
}

ClusterConfig selected(const std::string& cluster, const std::string& user) {
  const Result<ClusterConfig> config = select(kubeconfig(cluster, user));
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
  return config.ok() ? *config : ClusterConfig();
}

TEST(KubeconfigTest, TheCurrentContextGivesServerAndNamespace) {
  const ClusterConfig config = selected("", "");
  EXPECT_EQ(config.server, "https://api:6443");
  EXPECT_EQ(config.namespace_, "jobs");
  EXPECT_EQ(config.origin, "/home/me/.kube/config, context \"here\"");
  EXPECT_THAT(config.warnings, testing::IsEmpty());
}

TEST(KubeconfigTest, TheNamespaceIsDefaultWhenTheContextNamesNone) {
  const Result<ClusterConfig> config = select(
      "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: s}}]");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->namespace_, "default");
}

TEST(KubeconfigTest, InlineDataIsDecodedAndGoesBeforeFiles) {
  const ClusterConfig config =
      selected(", certificate-authority: ca.pem, certificate-authority-data: Y2E=",
               "client-certificate: c.pem, client-certificate-data: Y2VydA==, client-key: k.pem, "
               "client-key-data: a2V5");
  EXPECT_EQ(config.ca_data, "ca");
  EXPECT_EQ(config.certificate_data, "cert");
  EXPECT_EQ(config.key_data, "key");
  EXPECT_EQ(config.ca_file + config.certificate_file + config.key_file, "");
}

TEST(KubeconfigTest, RelativePathsAreRelativeToTheKubeconfig) {
  const ClusterConfig config =
      selected(", certificate-authority: ../ca.pem",
               "client-certificate: pki/c.pem, client-key: /k.pem, tokenFile: t");
  EXPECT_EQ(config.ca_file, "/home/me/.kube/../ca.pem");
  EXPECT_EQ(config.certificate_file, "/home/me/.kube/pki/c.pem");
  EXPECT_EQ(config.key_file, "/k.pem");
  EXPECT_EQ(config.token_file, "/home/me/.kube/t");
  const Result<ClusterConfig> here =
      select(kubeconfig(", certificate-authority: ca.pem", ""), "", "config");
  ASSERT_TRUE(here.ok());
  EXPECT_EQ(here->ca_file, "ca.pem");
}

TEST(KubeconfigTest, TokensAndServerNameAndProxyAreRead) {
  const ClusterConfig config =
      selected(", tls-server-name: kubernetes, proxy-url: 'http://proxy:3128'", "token: abc");
  EXPECT_EQ(config.token, "abc");
  EXPECT_EQ(config.server_name, "kubernetes");
  EXPECT_EQ(config.proxy_url, "http://proxy:3128");
}

TEST(KubeconfigTest, UnverifiedTlsComesWithAWarning) {
  const ClusterConfig config = selected(", insecure-skip-tls-verify: true", "");
  EXPECT_TRUE(config.insecure_skip_verify);
  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_THAT(config.warnings[0], HasSubstr("give the cluster's certificate-authority instead"));
}

TEST(KubeconfigTest, PlainHttpComesWithAWarning) {
  const Result<ClusterConfig> config = select(
      "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:8001'}}]");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->warnings.size(), 1U);
}

TEST(KubeconfigTest, AnExecPluginIsReadWhole) {
  const ClusterConfig config = selected(
      ", certificate-authority-data: Y2E=, tls-server-name: n, extensions: [{name: "
      "client.authentication.k8s.io/exec, extension: {audience: me}}]",
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/get-token, args: [-v, "
      "'1'], env: [{name: A, value: b}], installHint: install it, interactiveMode: IfAvailable, "
      "provideClusterInfo: true}");
  ASSERT_TRUE(config.exec);
  EXPECT_EQ(config.exec->command, "/home/me/.kube/./bin/get-token");
  EXPECT_THAT(config.exec->arguments, testing::ElementsAre("-v", "1"));
  EXPECT_THAT(config.exec->environment, testing::ElementsAre(testing::Pair("A", "b")));
  EXPECT_EQ(config.exec->install_hint, "install it");
  const Json cluster = {{"server", "https://api:6443"},
                        {"tls-server-name", "n"},
                        {"certificate-authority-data", "Y2E="},
                        {"config", {{"audience", "me"}}}};
  EXPECT_EQ(config.exec->cluster, cluster);
}

TEST(KubeconfigTest, AnExecPluginWithoutASlashIsLookedForInPath) {
  const ClusterConfig config =
      selected("", "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}");
  ASSERT_TRUE(config.exec);
  EXPECT_EQ(config.exec->command, "aws");
  EXPECT_TRUE(config.exec->cluster.is_null());
}

TEST(KubeconfigTest, AnotherContextCanBeAskedFor) {
  const std::string text =
      "current-context: a\ncontexts: [{name: a, context: {cluster: c}}, {name: b, context: "
      "{cluster: d}}]\nclusters: [{name: c, cluster: {server: one}}, {name: d, cluster: {server: two}}]";
  ASSERT_TRUE(select(text, "b").ok());
  EXPECT_EQ(select(text, "b")->server, "two");
}

TEST(KubeconfigTest, OfSeveralFilesTheFirstThatKnowsANameWinsWhole) {
  const Result<Kubeconfig> first =
      parse_kubeconfig("/a/one", "current-context: x\nusers: [{name: u, user: {tokenFile: t}}]");
  const Result<Kubeconfig> second = parse_kubeconfig(
      "/b/two",
      "current-context: other\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
      "clusters: [{name: c, cluster: {server: s, certificate-authority: ca}}]\n"
      "users: [{name: u, user: {client-certificate: c, client-key: k}}]");
  ASSERT_TRUE(first.ok() && second.ok());
  const Result<ClusterConfig> config = select_context({*first, *second}, "");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->token_file, "/a/t");
  EXPECT_EQ(config->ca_file, "/b/ca");
  EXPECT_EQ(config->certificate_file, "");
}

struct BadCase {
  const char* name;
  std::string text;
  const char* message;  // a part of it: what is wrong or what to do
};

class BadKubeconfigTest : public testing::TestWithParam<BadCase> {};

TEST_P(BadKubeconfigTest, IsRefusedWithAMessageThatSaysWhyAndShowsNoSecret) {
  const Result<ClusterConfig> config = select(GetParam().text);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(config.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(config.error().message, HasSubstr("/home/me/.kube/config"));
  EXPECT_THAT(config.error().message, Not(HasSubstr("hunter2")));
}

std::string exec(const std::string& rest) {
  return kubeconfig("", "exec: {apiVersion: client.authentication.k8s.io/v1, " + rest + "}");
}

const BadCase kBadCases[] = {
    {"NotYaml", "users: [token: hunter2", "not valid YAML at line 1"},
    {"AList", "[1, 2]", "not a YAML mapping"},
    {"AnotherKind", "kind: Pod\napiVersion: v1", "kind must be Config"},
    {"UsersAreNoList", "users: {a: b}", "users must be a list"},
    {"Empty", "", "no current-context is set"},
    {"NoCurrentContext", "contexts: [{name: a, context: {cluster: c}}]", "there are: a"},
    {"UnknownContext", "current-context: b\ncontexts: [{name: a, context: {}}]",
     "there is no context \"b\"; there are: a"},
    {"UnknownCluster", "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]",
     "there is no cluster \"c\""},
    {"UnknownUser",
     "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: "
     "c, cluster: {server: s}}]",
     "there is no user \"u\""},
    {"NoServer",
     "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]",
     "names no server"},
    {"ServerIsAList",
     "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, "
     "cluster: {server: [s]}}]",
     "server must be a text"},
    {"CaIsNotBase64", kubeconfig(", certificate-authority-data: '!!hunter2'", ""),
     "certificate-authority-data is not base64"},
    {"InsecureIsNoFlag", kubeconfig(", insecure-skip-tls-verify: maybe", ""),
     "must be true or false"},
    {"InsecureWithCa",
     kubeconfig(", insecure-skip-tls-verify: true, certificate-authority-data: Y2E=", ""),
     "remove insecure-skip-tls-verify"},
    {"KeyIsNotBase64", kubeconfig("", "client-certificate: c, client-key-data: 'hunter2?'"),
     "client-key-data is not base64"},
    {"CertificateWithoutKey", kubeconfig("", "client-certificate: c"), "no client-key"},
    {"KeyWithoutCertificate", kubeconfig("", "client-key: k"), "no client-certificate"},
    {"Password", kubeconfig("", "username: admin, password: hunter2"),
     "use a client certificate, a token or an exec plugin"},
    {"AuthProvider", kubeconfig("", "auth-provider: {name: gcp, config: {access-token: hunter2}}"),
     "use the exec plugin of your provider"},
    {"Impersonation", kubeconfig("", "token: hunter2, as: root"), "impersonation"},
    {"ImpersonatedGroups", kubeconfig("", "token: hunter2, as-groups: [x]"), "impersonation"},
    {"TokenIsAMapping", kubeconfig("", "token: {a: hunter2}"), "token must be a text"},
    {"TokenAndExec",
     kubeconfig("",
                "token: hunter2, exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"),
     "keep one of them"},
    {"ExecWithoutCommand", exec("args: [hunter2]"), "names no command"},
    {"ExecOfAnOldVersion",
     kubeconfig("", "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}"),
     "must be client.authentication.k8s.io/v1 or v1beta1"},
    {"ExecModeUnknown", exec("command: x, interactiveMode: Perhaps"), "interactiveMode must be"},
    {"ExecArgumentsAreNoList", exec("command: x, args: hunter2"), "args must be a list"},
    {"ExecArgumentIsAList", exec("command: x, args: [[hunter2]]"), "args must be a list of texts"},
    {"ExecEnvironmentIsNoList", exec("command: x, env: {A: hunter2}"), "env must be a list"},
    {"ExecEnvironmentWithoutName", exec("command: x, env: [{value: hunter2}]"),
     "needs a name and a value"},
    {"ExecClusterInfoIsNoFlag", exec("command: x, provideClusterInfo: 7"),
     "provideClusterInfo must be true or false"},
};

INSTANTIATE_TEST_SUITE_P(Table, BadKubeconfigTest, testing::ValuesIn(kBadCases),
                         [](const auto& bad) { return std::string(bad.param.name); });

}  // namespace
}  // namespace holdfast::kube
