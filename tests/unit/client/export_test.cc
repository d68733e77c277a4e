// normlab export against a scripted server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "client/program.h"
#include "tests/non_finite.h"
#include "tests/unit/client/fake_server.h"

namespace normlab::client {
namespace {

using normlab::v1::Column;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kId[] = "01J0000000AAAAAAAAAAAAAAAA";

class ExportTest : public testing::Test {
 protected:
  ExportTest() {
    ::unsetenv("NORMLAB_SERVER");
    ::unsetenv("NORMLAB_TOKEN");
    ::setenv("NORMLAB_DATA_DIR", server_.data_dir().c_str(), 1);
    v1::Run run;
    run.set_id(kId);
    run.set_display_name("a run");
    run.add_attempts()->set_number(1);
    run.add_attempts()->set_number(2);
    server_.runs = {run};
  }

  void AddColumn(const std::string& name, const std::vector<int64_t>& steps,
                 const std::vector<double>& values) {
    Column column;
    column.set_name(name);
    column.mutable_steps()->Add(steps.begin(), steps.end());
    column.mutable_values()->Add(values.begin(), values.end());
    server_.series[kId].push_back(column);
  }

  int Normlab(const std::vector<std::string>& arguments, bool smart = false) {
    out_.clear();
    err_.clear();
    Terminal::Traits traits;
    traits.smart = smart;
    traits.out = [this](std::string_view bytes) { out_ += bytes; };
    traits.err = [this](std::string_view bytes) { err_ += bytes; };
    Terminal terminal(std::move(traits));
    return RunProgram(arguments, terminal);
  }

  std::vector<std::string> Lines() const {
    std::istringstream stream(out_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  FakeServer server_;
  std::string out_, err_;
};

TEST_F(ExportTest, FourKindsOfNotAFiniteNumberAreFourDifferentCells) {
  AddColumn("loss", {1, 2, 3}, {kNan, kInfinity, -kInfinity});
  AddColumn("extra", {4}, {1});
  ASSERT_EQ(Normlab({"export", kId}), 0) << err_;
  EXPECT_EQ(out_,
            "run,step,loss,gradient_norm,learning_rate,extra\n"
            "a run,1,NaN,,,\n"
            "a run,2,Infinity,,,\n"
            "a run,3,-Infinity,,,\n"
            "a run,4,,,,1\n");
}

TEST_F(ExportTest, EveryDoubleReadsBackAsTheSameBits) {
  std::mt19937_64 random(2);
  std::vector<int64_t> steps;
  std::vector<double> values = {0.0, -0.0, 5e-324, -5e-324, std::numeric_limits<double>::max()};
  while (values.size() < 5000) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) values.push_back(value);
  }
  for (size_t i = 0; i < values.size(); ++i) steps.push_back(static_cast<int64_t>(i) + 1);
  AddColumn("loss", steps, values);

  ASSERT_EQ(Normlab({"export", kId}), 0) << err_;
  const std::vector<std::string> rows = Lines();
  ASSERT_EQ(rows.size(), values.size() + 1);
  ASSERT_EQ(Normlab({"export", kId, "--format", "jsonl"}), 0) << err_;
  const auto json = nlohmann::json::parse(Lines().at(0));
  const auto& written = json["columns"]["loss"]["values"];
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& row = rows[i + 1];
    const size_t begin = row.find(',', row.find(',') + 1) + 1;
    const double read = std::strtod(row.c_str() + begin, nullptr);
    EXPECT_EQ(std::memcmp(&read, &values[i], sizeof(read)), 0) << row;
    EXPECT_EQ(written[i].get<double>(), values[i]);
  }
}

TEST_F(ExportTest, AllAttemptsHaveTheirNumberInAColumn) {
  AddColumn("loss", {1, 2}, {4, 3});
  ASSERT_EQ(Normlab({"export", kId, "--attempts", "all"}), 0) << err_;
  EXPECT_EQ(out_,
            "run,attempt,step,loss,gradient_norm,learning_rate\n"
            "a run,1,1,4,,\na run,1,2,3,,\na run,2,1,4,,\na run,2,2,3,,\n");
  EXPECT_EQ(Normlab({"export", kId, "--attempts", "some"}), 2);
}

TEST_F(ExportTest, JsonLinesAreTheEncodingThatStreamsHave) {
  AddColumn("loss", {1, 2}, {4.5, kNan});
  ASSERT_EQ(Normlab({"export", kId, "--format", "jsonl", "--attempts", "all"}), 0) << err_;
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], std::string("{\"run\":\"") + kId +
                          "\",\"attempt\":2,\"columns\":{\"loss\":{\"steps\":[1,2],"
                          "\"values\":[4.5,\"NaN\"]}}}");
}

TEST_F(ExportTest, AFileIsReportedWithItsRows) {
  AddColumn("loss", {1, 2}, {4, 3});
  const std::string path = (server_.data_dir() / "run.csv").string();
  ASSERT_EQ(Normlab({"export", kId, "-o", path}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("run.csv: 2 rows"));
  ASSERT_EQ(Normlab({"--json", "export", kId, "--format", "jsonl", "-o", path}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\"lines\":1"));
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_THAT(line, StartsWith("{\"run\""));
}

}  // namespace
}  // namespace normlab::client
