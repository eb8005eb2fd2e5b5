// The program itself, as a person starts it: exit codes and messages, without a cluster.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::seconds kPatience{30};

// One run of holdfast-operator; killed with the test's end.
class Program {
 public:
  // `files`: its limits of open files, if not ours.
  explicit Program(const std::vector<std::string>& arguments,
                   std::optional<rlimit> files = std::nullopt) {
    std::array<int, 2> pipe_fds{};
    EXPECT_EQ(pipe2(pipe_fds.data(), O_CLOEXEC), 0);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(pipe_fds[1], STDOUT_FILENO);
      dup2(pipe_fds[1], STDERR_FILENO);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(127);
      std::vector<char*> argv = {const_cast<char*>(HOLDFAST_OPERATOR)};
      for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
      }
      argv.push_back(nullptr);
      unsetenv("KUBECONFIG");
      if (files && setrlimit(RLIMIT_NOFILE, &*files) != 0) _exit(127);
      execv(HOLDFAST_OPERATOR, argv.data());
      _exit(127);
    }
    close(pipe_fds[1]);
    output_fd_ = pipe_fds[0];
    fcntl(output_fd_, F_SETFL, O_NONBLOCK);
  }
  ~Program() {
    if (!reaped_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(output_fd_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const { kill(pid_, number); }

  // What it has written so far.
  const std::string& output() {
    std::array<char, 4096> part;
    ssize_t count = 0;
    while ((count = read(output_fd_, part.data(), part.size())) > 0) {
      output_.append(part.data(), static_cast<std::size_t>(count));
    }
    return output_;
  }
  bool says(const std::string& text) {
    return within([&] { return output().find(text) != std::string::npos; });
  }
  // The exit code; -1: it did not end (or not by itself).
  int exit_code() {
    int status = 0;
    const bool ended = within([&] {
      output();  // a full pipe would stop it
      return waitpid(pid_, &status, WNOHANG) == pid_;
    });
    reaped_ = ended;
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::uint16_t port() {
    const std::string mark = "address=127.0.0.1:";
    if (!says(mark)) return 0;
    return static_cast<std::uint16_t>(
        std::stoi(output().substr(output().find(mark) + mark.size())));
  }

 private:
  template <class Condition>
  static bool within(const Condition& condition) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  pid_t pid_ = -1;
  int output_fd_ = -1;
  bool reaped_ = false;
  std::string output_;
};

std::string get(std::uint16_t port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
    send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    std::array<char, 4096> part;
    ssize_t count = 0;
    while ((count = recv(fd, part.data(), part.size(), 0)) > 0) {
      answer.append(part.data(), static_cast<std::size_t>(count));
    }
  }
  close(fd);
  return answer;
}

// A kubeconfig whose server answers nothing: port 1 of the loopback address.
class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::ofstream(kubeconfig()) << R"(apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: c
)";
  }
  ~ProgramTest() override { std::filesystem::remove_all(folder_); }
  std::string kubeconfig() const { return folder_ / "kubeconfig"; }
  static std::string namespaces(int count) {
    std::string names = "n0";
    for (int i = 1; i < count; ++i) names += ",n" + std::to_string(i);
    return names;
  }

  std::filesystem::path folder_;
};

TEST_F(ProgramTest, HelpAndVersionEndWithZero) {
  Program help({"--help"});
  EXPECT_EQ(help.exit_code(), 0);
  EXPECT_THAT(help.output(), HasSubstr("--metrics-address"));
  Program version({"--version"});
  EXPECT_EQ(version.exit_code(), 0);
  EXPECT_THAT(version.output(), HasSubstr("holdfast-operator "));
}

TEST_F(ProgramTest, NonsenseEndsWithTwoBeforeAnythingElse) {
  Program program({"--workers=0", "--kubeconfig=" + kubeconfig()});
  EXPECT_EQ(program.exit_code(), 2);
  EXPECT_EQ(
      program.output(),
      "holdfast-operator: --workers: \"0\" is not a number of workers: give a whole number from 1 to 1000\n");
}

TEST_F(ProgramTest, AKubeconfigThatIsNotThereEndsWithOneAndIsNamed) {
  const std::string missing = folder_ / "missing";
  Program program({"--kubeconfig=" + missing, "--metrics-address=127.0.0.1:0"});
  EXPECT_EQ(program.exit_code(), 1);
  EXPECT_THAT(program.output(), HasSubstr(missing));
}

TEST_F(ProgramTest, WithoutAnApiServerItIsAliveNotReadyAndStopsCleanly) {
  Program program({"--kubeconfig=" + kubeconfig(), "--metrics-address=127.0.0.1:0"});
  const std::uint16_t port = program.port();
  ASSERT_NE(port, 0) << program.output();
  EXPECT_THAT(get(port, "/healthz"), HasSubstr(" 200 "));
  EXPECT_THAT(get(port, "/readyz"), HasSubstr(" 503 "));
  EXPECT_THAT(get(port, "/metrics"), HasSubstr("holdfast_build_info"));
  ASSERT_TRUE(program.says("list failed") || program.says("watch failed")) << program.output();
  program.signal(SIGTERM);
  EXPECT_EQ(program.exit_code(), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("why=SIGTERM"));
}

TEST_F(ProgramTest, TheLimitOfOpenFilesIsRaisedToWhatTheNamespacesNeed) {
  Program program({"--kubeconfig=" + kubeconfig(), "--metrics-address=127.0.0.1:0",
                   "--watch-namespace=" + namespaces(20)},
                  rlimit{128, 1024});
  const std::uint16_t port = program.port();
  ASSERT_NE(port, 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("raised the limit of open files from=128 to=566"));
  EXPECT_THAT(program.output(), Not(HasSubstr("too low")));
  EXPECT_NE(get(port, "/metrics").find("process_max_fds 566\n"), std::string::npos);
}

TEST_F(ProgramTest, AHardLimitOfOpenFilesThatIsTooLowIsReported) {
  Program program({"--kubeconfig=" + kubeconfig(), "--metrics-address=127.0.0.1:0",
                   "--watch-namespace=" + namespaces(100)},
                  rlimit{128, 512});
  ASSERT_NE(program.port(), 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("from=128 to=512"));
  EXPECT_THAT(
      program.output(),
      HasSubstr("limit=512 needed=1686 watched_namespaces=100 namespaces_within_the_limit=16"));
  EXPECT_THAT(program.output(), HasSubstr("raise the hard limit of open files"));
}

TEST_F(ProgramTest, ATakenPortEndsWithOneAndSaysWhatToDo) {
  Program first({"--kubeconfig=" + kubeconfig(), "--metrics-address=127.0.0.1:0"});
  const std::string address = "127.0.0.1:" + std::to_string(first.port());
  Program second({"--kubeconfig=" + kubeconfig(), "--metrics-address=" + address});
  EXPECT_EQ(second.exit_code(), 1);
  EXPECT_THAT(second.output(), HasSubstr("choose another address with --metrics-address"));
}

}  // namespace
