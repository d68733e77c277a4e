// normlab login and logout: the server on TCP that the command line speaks to from now on.
#include <fmt/format.h>

#include <memory>

#include "client/commands/commands.h"
#include "client/login_file.h"
#include "client/secret.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

using normlab::v1::UserService;

int LogIn(Context& context, const std::string& server, const std::string& token_file) {
  if (const absl::Status address = CheckAddress(server); !address.ok()) {
    return context.FailUsage(std::string(address.message()));
  }
  absl::StatusOr<std::string> token =
      ReadToken(context, token_file, fmt::format("Token for {}: ", Clean(server)));
  if (!token.ok()) return context.Fail(token.status());
  // Nothing is noted before the server has said whose token it is.
  Endpoint endpoint;
  endpoint.target = server;
  endpoint.token = *token;
  ApiClient client(endpoint);
  const auto me =
      client.Call(client.users(), &UserService::Stub::GetMe, normlab::v1::GetMeRequest());
  if (!me.ok()) return context.Fail(me.status());
  if (absl::Status written = WriteLogin({server, *token}); !written.ok()) {
    return context.Fail(written);
  }
  if (context.json) {
    context.PrintJson(*me);
  } else {
    context.terminal.Print(fmt::format("logged in to {} as {} ({})", Clean(server),
                                       Clean(me->name()), Clean(me->role())));
  }
  return kExitOk;
}

int LogOut(Context& context) {
  const absl::StatusOr<bool> removed = RemoveLogin();
  if (!removed.ok()) return context.Fail(removed.status());
  if (context.json) {
    context.terminal.Print("{}");
  } else {
    context.terminal.Print(*removed ? "logged out; the token itself still counts, until it is "
                                      "replaced (normlab user rotate)"
                                    : "not logged in anywhere");
  }
  return kExitOk;
}

}  // namespace

void AddLogin(CLI::App& program, Context& context) {
  auto server = std::make_shared<std::string>();
  auto token_file = std::make_shared<std::string>();
  CLI::App* login = program.add_subcommand("login", "Use a server on TCP from now on");
  login->add_option("address", *server, "HOST:PORT of its gRPC")->required();
  login->add_option("--token-file", *token_file, "Take the token from there; - is standard input")
      ->type_name("FILE");
  login->footer(
      "Examples:\n  normlab login gpubox:8711\n"
      "  normlab login 127.0.0.1:8711 --token-file ada.token\n"
      "\nThe token is kept in normlab/login.json of your configuration folder (0600).\n"
      "--server, --data-dir and their variables go before it; normlab logout forgets it.");
  login->callback(
      [&context, server, token_file] { context.exit_code = LogIn(context, *server, *token_file); });
  CLI::App* logout = program.add_subcommand("logout", "Forget the server of `normlab login`");
  logout->footer("Examples:\n  normlab logout");
  logout->callback([&context] { context.exit_code = LogOut(context); });
}

}  // namespace normlab::client
