// Calls of the api from a coroutine on the socket thread, made on the api's own pool.
//
//   auto work = [&] { return api.GetRun(who, request); };
//   absl::StatusOr<v1::Run> run = co_await pool.Run(std::move(work));
//
// The coroutine is suspended meanwhile, so `work` may refer to its variables. The io_context keeps
// running until the answer is back, and outlives the pool's last touch of it.
#ifndef NORMLAB_SERVER_HTTP_API_POOL_H_
#define NORMLAB_SERVER_HTTP_API_POOL_H_

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "boost/asio/async_result.hpp"
#include "boost/asio/awaitable.hpp"
#include "boost/asio/executor_work_guard.hpp"
#include "boost/asio/io_context.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/use_awaitable.hpp"
#include "server/app/api.h"

namespace normlab::http {

class ApiPool {
 public:
  ApiPool(app::Api& api, std::shared_ptr<boost::asio::io_context> io)
      : api_(api), io_(std::move(io)) {}

  const std::shared_ptr<boost::asio::io_context>& io() const { return io_; }

  enum class Lane { kShort, kReads };  // Api::Post or Api::PostRead

  // `work` returns an absl::StatusOr. An exception from it becomes INTERNAL.
  template <typename Work>
  boost::asio::awaitable<std::invoke_result_t<Work&>> Run(Work work, Lane lane = Lane::kShort) {
    using Result = std::invoke_result_t<Work&>;
    auto initiate = [this, lane, work = std::move(work)](auto handler) mutable {
      this->template Start<Result>(std::move(work), lane, std::move(handler));
    };
    // Named, because GCC 12 mishandles some temporaries in a co_await expression.
    auto operation =
        boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void(Result)>(
            std::move(initiate), boost::asio::use_awaitable);
    co_return co_await std::move(operation);
  }

 private:
  template <typename Result, typename Work, typename Handler>
  void Start(Work work, Lane lane, Handler handler) {
    // std::function wants copies, a coroutine's handler has none: share it.
    struct Job {
      Work work;
      Handler handler;
      boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard;
    };
    auto job = std::make_shared<Job>(
        Job{std::move(work), std::move(handler), boost::asio::make_work_guard(*io_)});
    auto run = [io = io_, job] {
      boost::asio::post(*io, [job, result = Call<Result>(job->work)]() mutable {
        const auto guard = std::move(job->guard);
        job->handler(std::move(result));
      });
    };
    lane == Lane::kReads ? api_.PostRead(std::move(run)) : api_.Post(std::move(run));
  }

  template <typename Result, typename Work>
  static Result Call(Work& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      return absl::InternalError(error.what());
    }
  }

  app::Api& api_;
  const std::shared_ptr<boost::asio::io_context> io_;
};

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_API_POOL_H_
