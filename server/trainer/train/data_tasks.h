// The tasks behind MakeDataSource(), a file each.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_DATA_TASKS_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_DATA_TASKS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/trainer/train/data.h"
#include "server/trainer/train/numpy_random.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// A source whose only state is its random stream.
class RandomData : public DataSource {
 public:
  // `kind` is the k of data.h.
  RandomData(const TrainingSettings& settings, uint64_t kind);

  std::vector<uint64_t> State() const override;
  void Restore(std::span<const uint64_t> state) override;

 protected:
  const size_t batch_;
  const size_t time_;
  const uint32_t vocab_;
  NumpyRandom random_;
};

// Throws std::runtime_error saying that `data` needs `name` to be at least `least`.
void RequireAtLeast(const TrainingSettings& settings, const char* name, int64_t value,
                    int64_t least);

std::unique_ptr<DataSource> MakeArithmeticData(const TrainingSettings& settings);
std::unique_ptr<DataSource> MakeModularAdditionData(const TrainingSettings& settings);
std::unique_ptr<DataSource> MakeGaussianData(const TrainingSettings& settings);
// copy and reverse, in one sequence or from encoder to decoder.
std::unique_ptr<DataSource> MakeRepeatData(const TrainingSettings& settings);
std::unique_ptr<DataSource> MakeTextData(const TrainingSettings& settings);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_DATA_TASKS_H_
