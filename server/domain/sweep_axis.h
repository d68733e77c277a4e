// One axis of a sweep: its values, or the numbers of its range. The parts of ExpandSweep.
#ifndef NORMLAB_SERVER_DOMAIN_SWEEP_AXIS_H_
#define NORMLAB_SERVER_DOMAIN_SWEEP_AXIS_H_

#include <string>
#include <vector>

#include "normlab/v1/experiment_service.pb.h"
#include "server/domain/settings.h"
#include "server/domain/violations.h"

namespace normlab::domain {

// One value of a setting, to be put into specs.
class AxisValue {
 public:
  // `text` is one that the setting accepts.
  AxisValue(const SettingInfo& setting, const std::string& text);
  void PutInto(v1::RunSpec& spec) const;
  // The same for the same value, however it was written: "0.001" for 1e-3.
  const std::string& text() const { return text_; }

 private:
  std::string setting_;
  std::string text_;
  v1::RunSpec spec_;  // the setting alone; nothing for "auto"
};

class Axis {
 public:
  // Adds what is wrong with `axis` to `wrong`, at `place` ("sweep.axes[1]"). `drawn`: its values
  // are drawn, and a range needs no count.
  Axis(const v1::SweepAxis& axis, bool drawn, const std::string& place,
       std::vector<FieldViolation>& wrong);

  // Null when there is no such setting.
  const SettingInfo* setting() const { return setting_; }
  // Of a grid.
  const std::vector<AxisValue>& values() const { return values_; }
  // The value that `u`, at least 0 and below 1, stands for.
  AxisValue At(double u) const;

 private:
  void ReadValues(const v1::SweepAxis& axis, const std::string& place,
                  std::vector<FieldViolation>& wrong);
  void ReadRange(bool drawn, const std::string& place, std::vector<FieldViolation>& wrong);
  bool CheckRange(bool drawn, const std::string& place, std::vector<FieldViolation>& wrong) const;
  void AddRangeValues(const std::string& place, std::vector<FieldViolation>& wrong);

  const SettingInfo* setting_ = nullptr;
  v1::SweepRange range_;
  std::vector<AxisValue> values_;
};

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_SWEEP_AXIS_H_
