#include "server/executor/exit_report.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::executor {
namespace {

class ExitReportTest : public testing::Test {
 protected:
  ExitReport Read(const std::string& text) {
    std::ofstream(dir_.path() / "exit.json") << text;
    return ReadExitReport(dir_.path());
  }
  fakes::TempDir dir_;
};

TEST_F(ExitReportTest, NumbersThatNoProcessHasAreNoReport) {
  for (const char* text : {R"({"exit_code": 256})", R"({"exit_code": -1})", R"({"exit_signal": 0})",
                           R"({"exit_signal": 65})", R"({"exit_code": 4294967296})",
                           R"({"exit_signal": 18446744073709551615})", R"({"exit_code": 1.5})"}) {
    EXPECT_TRUE(Read(text).lost) << text;
  }
  EXPECT_EQ(Read(R"({"exit_code": 255})").exit_code, 255);
  EXPECT_EQ(Read(R"({"exit_signal": 64})").exit_signal, 64);
}

TEST_F(ExitReportTest, UsesThatMakeNoSenseCountAsNone) {
  for (const char* text : {R"({"exit_code":0,"max_rss_bytes":-5,"cpu_seconds":-0.5})",
                           R"({"exit_code":0,"max_rss_bytes":1e300,"cpu_seconds":"x"})",
                           R"({"exit_code":0,"max_rss_bytes":18446744073709551615})"}) {
    const ExitReport report = Read(text);
    EXPECT_FALSE(report.lost) << text;
    EXPECT_EQ(report.max_rss_bytes, 0) << text;
    EXPECT_EQ(report.cpu_seconds, 0) << text;
  }
}

}  // namespace
}  // namespace normlab::executor
