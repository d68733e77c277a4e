// One function a route: request in, call of the api, answer out. They run on the api's pool.
#ifndef NORMLAB_SERVER_HTTP_HANDLERS_H_
#define NORMLAB_SERVER_HTTP_HANDLERS_H_

#include "absl/status/statusor.h"
#include "server/http/answer.h"
#include "server/http/routes.h"

namespace normlab::http {

absl::StatusOr<Answer> Health(const Call& call);
absl::StatusOr<Answer> Metrics(const Call& call);

absl::StatusOr<Answer> ListRuns(const Call& call);
absl::StatusOr<Answer> CreateRun(const Call& call);
absl::StatusOr<Answer> GetRun(const Call& call);
absl::StatusOr<Answer> UpdateRun(const Call& call);
absl::StatusOr<Answer> DeleteRun(const Call& call);
absl::StatusOr<Answer> PruneRuns(const Call& call);
absl::StatusOr<Answer> HoldRun(const Call& call);
absl::StatusOr<Answer> ReleaseRun(const Call& call);
absl::StatusOr<Answer> MoveRun(const Call& call);
absl::StatusOr<Answer> CancelRun(const Call& call);
absl::StatusOr<Answer> PauseRun(const Call& call);
absl::StatusOr<Answer> ResumeRun(const Call& call);
absl::StatusOr<Answer> RetryRun(const Call& call);
absl::StatusOr<Answer> ProbeRun(const Call& call);
absl::StatusOr<Answer> ReadSeries(const Call& call);
absl::StatusOr<Answer> ReadLog(const Call& call);

absl::StatusOr<Answer> ListExperiments(const Call& call);
absl::StatusOr<Answer> CreateExperiment(const Call& call);
absl::StatusOr<Answer> GetExperiment(const Call& call);
absl::StatusOr<Answer> CancelExperiment(const Call& call);
absl::StatusOr<Answer> ListPresets(const Call& call);

absl::StatusOr<Answer> ListDevices(const Call& call);
absl::StatusOr<Answer> GetQueue(const Call& call);
absl::StatusOr<Answer> UpdateDevice(const Call& call);
absl::StatusOr<Answer> GetStorage(const Call& call);
absl::StatusOr<Answer> Settings(const Call& call);

absl::StatusOr<Answer> ListUsers(const Call& call);
absl::StatusOr<Answer> CreateUser(const Call& call);
absl::StatusOr<Answer> UpdateUser(const Call& call);
absl::StatusOr<Answer> DeleteUser(const Call& call);
absl::StatusOr<Answer> RotateToken(const Call& call);
absl::StatusOr<Answer> ListAuditEvents(const Call& call);

absl::StatusOr<Answer> GetMe(const Call& call);
absl::StatusOr<Answer> CreateLoginCode(const Call& call);
absl::StatusOr<Answer> ExchangeLoginCode(const Call& call);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_HANDLERS_H_
