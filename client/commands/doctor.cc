// normlab doctor: what could be wrong, and the remedy.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/commands/commands.h"
#include "client/health.h"
#include "client/storage_progress.h"
#include "client/term/text.h"
#include "client/version.h"

namespace normlab::client {
namespace {

using normlab::v1::DeviceService;
using normlab::v1::StorageService;
using normlab::v1::UserService;

struct Check {
  std::string name;
  enum Verdict { kGood, kWarning, kBad } verdict = kGood;
  std::string detail;
  std::string remedy;
};

using Checks = std::vector<Check>;

constexpr int64_t kMuchUnused = 64 << 20;  // bytes

// One file or folder of the data folder: it exists, is ours, and is closed to others.
Check PrivateCheck(const std::string& name, const std::filesystem::path& path, mode_t mode) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return {name, Check::kBad, fmt::format("there is no {}", path.string()), ""};
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return {name, Check::kBad, fmt::format("{} belongs to user {}", path.string(), info.st_uid),
            "use a data folder of your own: --data-dir DIR"};
  }
  if ((info.st_mode & 077) != 0) {
    return {name, Check::kBad,
            fmt::format("{} is open to others (mode {:o})", path.string(), info.st_mode & 0777),
            fmt::format("chmod {:o} {}", mode, path.string())};
  }
  return {name, Check::kGood, path.string(), ""};
}

Check SpaceCheck(const std::filesystem::path& folder) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) {
    return {"disk", Check::kWarning, "cannot be read", ""};
  }
  const auto free = static_cast<int64_t>(space.f_bavail * space.f_frsize);
  constexpr int64_t kLittle = int64_t{1} << 30;
  return {"disk", free < kLittle ? Check::kWarning : Check::kGood, BytesText(free) + " free",
          free < kLittle ? "make room: runs wait while the disk is full" : ""};
}

void CheckDataFolder(const std::filesystem::path& folder, Checks& checks) {
  Check data = PrivateCheck("data folder", folder, 0700);
  if (data.verdict == Check::kBad && data.remedy.empty()) {
    data.remedy = "start the server once: " + StartCommand(folder);
  }
  const bool exists = ::access(folder.c_str(), F_OK) == 0;
  checks.push_back(std::move(data));
  if (!exists) return;
  checks.push_back(SpaceCheck(folder));
  if (::access((folder / "owner-token").c_str(), F_OK) == 0) {
    checks.push_back(PrivateCheck("owner token", folder / "owner-token", 0600));
  }
}

// Steps towards a server on this machine; false when there is no point in calling it.
bool CheckLocalServer(const std::filesystem::path& folder, Checks& checks) {
  Check file = PrivateCheck("endpoint file", folder / "endpoint.json", 0600);
  if (file.verdict == Check::kBad) {
    if (file.remedy.empty()) file.remedy = "start the server: " + StartCommand(folder);
    checks.push_back(std::move(file));
    return false;
  }
  checks.push_back(std::move(file));
  const absl::StatusOr<Endpoint> endpoint = ReadEndpointFile(folder);
  if (!endpoint.ok()) {
    checks.push_back({"endpoint file", Check::kBad, std::string(endpoint.status().message()), ""});
    return false;
  }
  if (endpoint->pid > 0) {
    const bool alive = ::kill(static_cast<pid_t>(endpoint->pid), 0) == 0 || errno == EPERM;
    checks.push_back({"server process", alive ? Check::kGood : Check::kBad,
                      fmt::format("pid {}{}", endpoint->pid, alive ? "" : " is gone"),
                      alive ? "" : "start it again: " + StartCommand(folder)});
  }
  if (endpoint->socket.empty()) return true;
  const absl::Status socket = CheckSocket(endpoint->socket);
  checks.push_back(
      {"socket", socket.ok() ? Check::kGood : Check::kBad,
       socket.ok() ? endpoint->socket : std::string(socket.message()),
       absl::IsUnavailable(socket) ? "start the server: " + StartCommand(folder) : ""});
  return socket.ok();
}

void CheckDevices(ApiClient& client, Checks& checks) {
  const auto devices = client.Call(client.devices(), &DeviceService::Stub::ListDevices,
                                   normlab::v1::ListDevicesRequest());
  if (!devices.ok()) {
    checks.push_back({"devices", Check::kBad, std::string(devices.status().message()), ""});
    return;
  }
  int usable = 0;
  for (const normlab::v1::Device& device : devices->devices()) {
    if (device.unavailable_reason().empty()) {
      ++usable;
    } else {
      checks.push_back({Clean(device.id()), Check::kWarning, Clean(device.unavailable_reason()),
                        "normlab devices"});
    }
  }
  checks.push_back({"devices", usable > 0 ? Check::kGood : Check::kBad,
                    fmt::format("{} of {} take runs", usable, devices->devices_size()),
                    usable > 0 ? "" : "no run can start; see: normlab devices"});
}

void CheckStorage(ApiClient& client, Checks& checks) {
  const auto storage = client.Call(client.storage(), &StorageService::Stub::GetStorage,
                                   normlab::v1::GetStorageRequest());
  if (absl::IsUnimplemented(storage.status())) {
    checks.push_back({"database", Check::kWarning, "the server is of a version that does not tell",
                      "run the same version on both sides"});
    return;
  }
  if (!storage.ok()) {
    checks.push_back({"database", Check::kBad, std::string(storage.status().message()), ""});
    return;
  }
  const bool much_unused = storage->unused_bytes() > kMuchUnused &&
                           storage->unused_bytes() > storage->database_bytes() / 4;
  checks.push_back(
      {"database", much_unused ? Check::kWarning : Check::kGood,
       fmt::format("{}, {} of it unused, {} in the log; {} runs, schema {}",
                   BytesText(storage->database_bytes()), BytesText(storage->unused_bytes()),
                   BytesText(storage->log_bytes()), CountText(storage->runs()), storage->schema()),
       much_unused ? "normlab compact" : ""});
  for (const std::string& problem : storage->problems()) {
    checks.push_back({"problem", Check::kBad, Clean(problem), ""});
  }
}

// Reads all of the database, on the server.
void CheckContent(Context& context, ApiClient& client, Checks& checks) {
  grpc::ClientContext call;  // without a deadline: a large database takes its time
  client.Prepare(call);
  const auto reader = client.storage().CheckStorage(&call, normlab::v1::CheckStorageRequest());
  normlab::v1::CheckStorageResponse message, last;
  {
    StorageProgressLine line(context);
    while (reader->Read(&message)) {
      if (message.has_progress()) line.Show(message.progress());
      if (message.complete()) last = message;
    }
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok() || !last.complete()) {
    checks.push_back(
        {"integrity", Check::kBad,
         status.ok() ? "the check did not end" : std::string(FromGrpc(status).message()), ""});
    return;
  }
  for (const std::string& fault : last.faults()) {
    checks.push_back({"integrity", Check::kBad, Clean(fault), "restore the latest good backup"});
  }
  if (last.faults().empty()) {
    checks.push_back({"integrity", Check::kGood, "pages, references, points and levels agree", ""});
  }
}

void CheckServer(Context& context, bool content, Checks& checks) {
  const auto client = context.Connect();
  if (!client.ok()) {
    checks.push_back({"server", Check::kBad, std::string(client.status().message()), ""});
    return;
  }
  const absl::Status health = CheckHealth((*client)->channel(), std::chrono::milliseconds(5000));
  checks.push_back({"server", health.ok() ? Check::kGood : Check::kBad,
                    health.ok() ? "healthy" : std::string(health.message()),
                    health.ok() ? "" : "look into its log, or start it again"});
  if (!health.ok()) return;
  const auto me =
      (*client)->Call((*client)->users(), &UserService::Stub::GetMe, normlab::v1::GetMeRequest());
  checks.push_back({"token", me.ok() ? Check::kGood : Check::kBad,
                    me.ok() ? fmt::format("accepted: {} ({})", Clean(me->name()), Clean(me->role()))
                            : std::string(me.status().message()),
                    me.ok() ? "" : "restart the server, or set NORMLAB_TOKEN to a valid one"});
  if (me.ok()) {
    CheckDevices(**client, checks);
    CheckStorage(**client, checks);
    if (content) CheckContent(context, **client, checks);
  }
  if (!(*client)->endpoint().http.empty()) {
    checks.push_back({"dashboard", Check::kGood, "http://" + (*client)->endpoint().http + "/", ""});
  }
}

void Print(const Checks& checks, Terminal& terminal) {
  const Style& style = terminal.style();
  for (const Check& check : checks) {
    const char* glyph = check.verdict == Check::kGood  ? "✓"
                        : check.verdict == Check::kBad ? "✕"
                                                       : "!";
    const char* colour = check.verdict == Check::kGood  ? "#2da44e"
                         : check.verdict == Check::kBad ? "#e5534b"
                                                        : "#c39a0b";
    terminal.Print(
        fmt::format("{} {} {}", style.Paint(glyph, colour), Pad(check.name, 16), check.detail));
    if (!check.remedy.empty()) terminal.Print(fmt::format("  {} → {}", Pad("", 16), check.remedy));
  }
}

void PrintJson(const Checks& checks, Terminal& terminal) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    const char* verdict = check.verdict == Check::kGood  ? "good"
                          : check.verdict == Check::kBad ? "bad"
                                                         : "warning";
    list.push_back({{"name", check.name},
                    {"verdict", verdict},
                    {"detail", check.detail},
                    {"remedy", check.remedy}});
  }
  terminal.Print(nlohmann::ordered_json{{"checks", list}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int Doctor(Context& context, bool content) {
  Checks checks = {{"normlab", Check::kGood, kVersion, ""}};
  const bool local = !GoesOverTcp(context.server, context.data_dir);
  const std::filesystem::path folder = DataDirectory(context.data_dir);
  bool call = true;
  if (local) {
    CheckDataFolder(folder, checks);
    call = CheckLocalServer(folder, checks);
  }
  if (call) CheckServer(context, content, checks);
  context.json ? PrintJson(checks, context.terminal) : Print(checks, context.terminal);
  for (const Check& check : checks) {
    if (check.verdict == Check::kBad) return kExitNoServer;
  }
  return kExitOk;
}

}  // namespace

void AddDoctor(CLI::App& program, Context& context) {
  CLI::App* command =
      program.add_subcommand("doctor", "Check folders, server, token and devices; name remedies");
  auto content = std::make_shared<bool>(false);
  command->add_flag("--check", *content,
                    "Read all of the database as well, from a copy; for admins");
  command->footer(
      "Examples:\n  normlab doctor\n  normlab doctor --check\n"
      "  normlab --data-dir /srv/normlab doctor --json");
  command->callback([&context, content] { context.exit_code = Doctor(context, *content); });
}

}  // namespace normlab::client
