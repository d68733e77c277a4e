// Who makes a change, and from where: what the audit says of it.
#ifndef NORMLAB_SERVER_DOMAIN_ACTOR_H_
#define NORMLAB_SERVER_DOMAIN_ACTOR_H_

#include <string>
#include <utility>

namespace normlab::domain {

struct Actor {
  Actor() = default;  // the server itself
  // A name stands for a user wherever an actor is asked for.
  Actor(const char* name) : user(name) {}          // NOLINT(google-explicit-constructor)
  Actor(std::string name, std::string where = {})  // NOLINT(google-explicit-constructor)
      : user(std::move(name)), origin(std::move(where)) {}

  std::string user;
  std::string origin;  // the peer's address, or "unix socket"
};

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_ACTOR_H_
