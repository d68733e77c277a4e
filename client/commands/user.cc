// normlab user: who may use the server. One subcommand each: add, ls, set, rotate, rm.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "client/ask.h"
#include "client/commands/commands.h"
#include "client/secret.h"
#include "client/term/table.h"

namespace normlab::client {
namespace {

using normlab::v1::User;
using normlab::v1::UserLimits;
using normlab::v1::UserService;

struct Options {
  std::string name;
  std::string role;
  std::optional<int64_t> running, queued;
  std::optional<uint64_t> gpu_memory;
  std::string token_file;
  bool print_token = false;
  bool removed = false;
  bool yes = false;
};
using OptionsPtr = std::shared_ptr<Options>;

// Puts the given rights into `user` and their names into `fields`.
void TakeRights(const Options& options, User& user, google::protobuf::FieldMask& fields) {
  UserLimits& limits = *user.mutable_limits();
  if (!options.role.empty()) {
    user.set_role(options.role);
    fields.add_paths("role");
  }
  if (options.running) {
    limits.set_running(*options.running);
    fields.add_paths("limits.running");
  }
  if (options.queued) {
    limits.set_queued(*options.queued);
    fields.add_paths("limits.queued");
  }
  if (options.gpu_memory) {
    limits.set_gpu_memory_bytes(static_cast<int64_t>(*options.gpu_memory));
    fields.add_paths("limits.gpu_memory_bytes");
  }
}

std::string LimitText(int64_t limit) { return limit == 0 ? "-" : CountText(limit); }

std::string MemoryText(int64_t bytes) { return bytes == 0 ? "-" : BytesText(bytes); }

void PrintUsers(Context& context, const google::protobuf::RepeatedPtrField<User>& users) {
  Table table({{"name"},
               {"role"},
               {"max running", Align::kRight},
               {"max queued", Align::kRight},
               {"max GPU memory", Align::kRight},
               {""}});
  for (const User& user : users) {
    table.Add({{Clean(user.name())},
               {Clean(user.role())},
               {LimitText(user.limits().running())},
               {LimitText(user.limits().queued())},
               {MemoryText(user.limits().gpu_memory_bytes())},
               {user.removed() ? "removed" : ""}});
  }
  table.PrintTo(context.terminal);
}

int List(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  normlab::v1::ListUsersRequest request;
  request.set_show_removed(options.removed);
  const auto answer = (*client)->Call((*client)->users(), &UserService::Stub::ListUsers, request);
  if (!answer.ok()) return context.Fail(answer.status());
  if (context.json) {
    for (const User& user : answer->users()) context.PrintJson(user);
  } else {
    PrintUsers(context, answer->users());
  }
  return kExitOk;
}

int FailSink(Context& context, const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return context.Fail(status);
  return context.FailUsage(std::string(status.message()));
}

// Puts an answer's token where it was wanted; `put_away` is said when that is a file.
template <typename Answer>
int GiveToken(Context& context, TokenSink& sink, Answer answer, const std::string& put_away) {
  if (absl::Status put = sink.Put(answer.token()); !put.ok()) return context.Fail(put);
  if (!sink.prints()) answer.clear_token();
  if (context.json) {
    context.PrintJson(answer);
  } else {
    context.terminal.Print(sink.prints() ? answer.token() : put_away);
  }
  return kExitOk;
}

int Add(Context& context, const Options& options) {
  absl::StatusOr<TokenSink> sink = TokenSink::Open(options.token_file, options.print_token);
  if (!sink.ok()) return FailSink(context, sink.status());
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  normlab::v1::CreateUserRequest request;
  google::protobuf::FieldMask ignored;
  request.mutable_user()->set_name(options.name);
  TakeRights(options, *request.mutable_user(), ignored);
  const auto answer = (*client)->Call((*client)->users(), &UserService::Stub::CreateUser, request);
  if (!answer.ok()) return context.Fail(answer.status());
  return GiveToken(context, *sink, *answer,
                   fmt::format("{}, a {}; the token is in {}", Clean(options.name),
                               Clean(answer->user().role()), Clean(options.token_file)));
}

int Set(Context& context, const Options& options) {
  normlab::v1::UpdateUserRequest request;
  request.mutable_user()->set_name(options.name);
  TakeRights(options, *request.mutable_user(), *request.mutable_update_mask());
  if (request.update_mask().paths().empty()) {
    return context.FailUsage("say what to change: --role or a limit");
  }
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  const auto user = (*client)->Call((*client)->users(), &UserService::Stub::UpdateUser, request);
  if (!user.ok()) return context.Fail(user.status());
  if (context.json) {
    context.PrintJson(*user);
  } else {
    google::protobuf::RepeatedPtrField<User> one;
    *one.Add() = *user;
    PrintUsers(context, one);
  }
  return kExitOk;
}

int Rotate(Context& context, const Options& options) {
  absl::StatusOr<TokenSink> sink = TokenSink::Open(options.token_file, options.print_token);
  if (!sink.ok()) return FailSink(context, sink.status());
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  normlab::v1::RotateTokenRequest request;
  request.set_name(options.name);
  const auto answer = (*client)->Call((*client)->users(), &UserService::Stub::RotateToken, request);
  if (!answer.ok()) return context.Fail(answer.status());
  return GiveToken(context, *sink, *answer,
                   fmt::format("the new token is in {}; all earlier ones count no more",
                               Clean(options.token_file)));
}

int Remove(Context& context, const Options& options) {
  const auto client = context.Connect();
  if (!client.ok()) return context.Fail(client.status());
  if (!options.yes) {
    const absl::StatusOr<bool> sure =
        Ask(context, fmt::format("Take all tokens of {} away?", Clean(options.name)));
    if (!sure.ok()) return context.Fail(sure.status());
    if (!*sure) return kExitOk;
  }
  normlab::v1::DeleteUserRequest request;
  request.set_name(options.name);
  const auto answer = (*client)->Call((*client)->users(), &UserService::Stub::DeleteUser, request);
  if (!answer.ok()) return context.Fail(answer.status());
  if (context.json) {
    context.terminal.Print("{}");
  } else {
    context.terminal.Print(
        fmt::format("{} removed; the runs stay, under the name", Clean(options.name)));
  }
  return kExitOk;
}

void AddRights(CLI::App& command, Options& options, bool role_required) {
  command.add_option("--role", options.role, "viewer, member or admin")
      ->check(CLI::IsMember({"viewer", "member", "admin"}))
      ->required(role_required);
  command.add_option("--max-running", options.running, "Runs that hold a device; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--max-queued", options.queued, "Runs in the queue; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--max-gpu-memory", options.gpu_memory, "Of all its runs: 8GiB; 0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
}

void AddTokenOptions(CLI::App& command, Options& options) {
  command.add_option("--token-file", options.token_file, "A new file for the token, for you alone")
      ->type_name("FILE");
  command.add_flag("--print-token", options.print_token, "Print the token instead");
}

using Action = int (*)(Context&, const Options&);

CLI::App* AddAction(CLI::App& user, Context& context, const char* name, const char* help,
                    const OptionsPtr& options, Action action) {
  CLI::App* command = user.add_subcommand(name, help);
  command->callback([&context, options, action] { context.exit_code = action(context, *options); });
  return command;
}

}  // namespace

void AddUser(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* user = program.add_subcommand("user", "Make, list, change and remove users");
  user->require_subcommand(1);
  user->footer(
      "Examples:\n  normlab user add ada --role member --token-file ada.token\n"
      "  normlab user set ada --max-running 2 --max-gpu-memory 8GiB\n"
      "  normlab user ls\n  normlab user rotate ada --token-file ada.new\n  normlab user rm ada");

  CLI::App* add = AddAction(*user, context, "add", "Make a user and a token", options, &Add);
  add->add_option("name", options->name, "1 to 64 letters, digits, . _ -")->required();
  AddRights(*add, *options, /*role_required=*/true);
  AddTokenOptions(*add, *options);
  add->footer(
      "Examples:\n  normlab user add ada --role member --max-running 2 "
      "--token-file ada.token\n  normlab user add wall --role viewer --print-token");

  CLI::App* ls = AddAction(*user, context, "ls", "List users", options, &List);
  ls->add_flag("--removed", options->removed, "Also those that were removed");
  ls->footer("Examples:\n  normlab user ls\n  normlab user ls --removed --json");

  CLI::App* set = AddAction(*user, context, "set", "Change role and limits", options, &Set);
  set->add_option("name", options->name, "Which user")->required();
  AddRights(*set, *options, /*role_required=*/false);
  set->footer(
      "Examples:\n  normlab user set ada --role admin\n  normlab user set ada "
      "--max-queued 0");

  CLI::App* rotate =
      AddAction(*user, context, "rotate", "Replace a user's token; without a name, your own",
                options, &Rotate);
  rotate->add_option("name", options->name, "Which user");
  AddTokenOptions(*rotate, *options);
  rotate->footer(
      "Examples:\n  normlab user rotate ada --token-file ada.new\n"
      "  normlab user rotate --print-token");

  CLI::App* rm =
      AddAction(*user, context, "rm", "Take all tokens of a user away", options, &Remove);
  rm->add_option("name", options->name, "Which user")->required();
  rm->add_flag("-y,--yes", options->yes, "Do not ask");
  rm->footer("Examples:\n  normlab user rm ada\n  normlab user rm ada --yes");
}

}  // namespace normlab::client
