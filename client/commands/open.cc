// normlab open: the dashboard in a browser, logged in.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "client/commands/commands.h"
#include "client/term/text.h"
#include "server/export/points_json.h"
#include "server/export/svg_parts.h"

extern char** environ;

namespace normlab::client {
namespace {

using normlab::v1::UserService;

// The folder for the redirect file: of this login, else of the data folder; ours alone.
absl::StatusOr<std::filesystem::path> PrivateFolder(const std::string& data_dir) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::filesystem::path parent = runtime != nullptr && *runtime != '\0'
                                           ? std::filesystem::path(runtime)
                                           : DataDirectory(data_dir);
  const std::filesystem::path folder =
      parent / (runtime != nullptr && *runtime != '\0' ? "normlab" : "login");
  std::error_code ignored;
  std::filesystem::create_directories(parent, ignored);
  struct stat info {};
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(
        fmt::format("cannot make {}: {}", folder.string(), std::strerror(errno)));
  }
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
      ::chmod(folder.c_str(), 0700) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} must be a folder of your own", folder.string()));
  }
  return folder;
}

// A page that goes to `url` at once. The login code is in the url: a file that only we can read
// keeps it out of the browser's command line, which everybody on the machine sees.
absl::StatusOr<std::filesystem::path> WriteRedirect(const std::string& url,
                                                    const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "open.html";
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::FailedPreconditionError(
        fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  }
  const std::string page = fmt::format(
      "<!doctype html><meta charset=\"utf-8\"><title>normlab</title>"
      "<meta name=\"referrer\" content=\"no-referrer\">"
      "<meta http-equiv=\"refresh\" content=\"0;url={0}\">"
      "<a href=\"{0}\">Open the dashboard</a>\n",
      exporter::XmlText(url));
  const bool written = ::write(fd, page.data(), page.size()) == static_cast<ssize_t>(page.size());
  ::close(fd);
  if (!written) return absl::FailedPreconditionError("cannot write " + path.string());
  return path;
}

// Runs the program with the file as its one argument; its output goes nowhere.
bool Launch(const std::string& program, const std::filesystem::path& file) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string program_copy = program, file_copy = file.string();
  char* arguments[] = {program_copy.data(), file_copy.data(), nullptr};
  pid_t pid = 0;
  const bool started =
      ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments, environ) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  if (!started) return false;
  // xdg-open ends at once, a browser of its own may stay: wait a moment for a failure only.
  for (int i = 0; i < 20; ++i) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) && !WEXITSTATUS(status);
    ::usleep(100'000);
  }
  return true;
}

bool LaunchBrowser(const std::filesystem::path& file) {
  const char* browser = std::getenv("BROWSER");
  if (browser != nullptr && *browser != '\0' && Launch(browser, file)) return true;
  return Launch("xdg-open", file);
}

int Open(Context& context, bool print) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const auto code = (*client)->Call((*client)->users(), &UserService::Stub::CreateLoginCode,
                                    normlab::v1::CreateLoginCodeRequest());
  if (!code.ok()) return context.Fail(code.status());
  if (print) {
    std::string json = "{\"url\":";
    exporter::AppendJsonString(json, code->url());
    context.terminal.Print(context.json ? json + "}" : code->url());
    return kExitOk;
  }
  const auto folder = PrivateFolder(context.data_dir);
  if (!folder.ok()) return context.Fail(folder.status());
  const auto file = WriteRedirect(code->url(), *folder);
  if (!file.ok()) return context.Fail(file.status());
  if (!LaunchBrowser(*file)) {
    return context.Fail(absl::FailedPreconditionError(
        "no browser could be started (BROWSER, xdg-open)\nopen this address in one yourself, "
        "within a minute: normlab open --print"));
  }
  if (!context.json) context.terminal.Print("Opened the dashboard in your browser.");
  return kExitOk;
}

}  // namespace

void AddOpen(CLI::App& program, Context& context) {
  auto print = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("open", "Open the dashboard in a browser, logged in");
  command->add_flag("--print", *print, "Print the address instead; it works once, for a minute");
  command->footer("Examples:\n  normlab open\n  normlab open --print");
  command->callback([&context, print] { context.exit_code = Open(context, *print); });
}

}  // namespace normlab::client
