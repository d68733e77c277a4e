// A fuzz target as a plain test, without libFuzzer: every file of the corpus, then inputs mutated
// from it, always the same ones.
//
//   NAME_fuzz CORPUS [--mutations N]      NAME_fuzz FILE      one input alone
//
// When a property breaks or a sanitizer finds a fault, the input is kept beside the program, as
// NAME_fuzz.crash.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Of the sanitizers' runtimes, which end the program without a signal; absent without one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr size_t kLongest = 64 << 10;

std::string current_input;
std::string crash_file;
std::string crash_words;

// Only what a signal handler may call.
void KeepInput() {
  const int fd = open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd >= 0 && write(fd, current_input.data(), current_input.size()) >= 0) {
    if (write(2, crash_words.data(), crash_words.size()) < 0) _exit(99);
  }
}

void KeepInputAndDie(int number) {
  KeepInput();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Not in the working folder, which may be the source tree.
void KeepInputsThatBreakSomething() {
  crash_file = std::filesystem::read_symlink("/proc/self/exe").string() + ".crash";
  crash_words = "the input is kept in " + crash_file + "\n";
  std::signal(SIGABRT, KeepInputAndDie);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(KeepInput);  // and reports the other signals itself
    return;
  }
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, KeepInputAndDie);
}

void RunOne(std::string input) {
  current_input = std::move(input);
  // A copy of exactly its size: a sanitizer sees who reads behind it.
  const std::vector<uint8_t> bytes(current_input.begin(), current_input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Sorted by name, so that the mutations are the same everywhere.
std::vector<std::string> ReadCorpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const std::filesystem::path& path : paths) inputs.push_back(ReadAll(path));
  return inputs;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string Next() {
    std::string input = corpus_[Below(corpus_.size())];
    for (size_t times = 1 + Below(4); times > 0; --times) Change(input);
    input.resize(std::min(input.size(), kLongest));
    return input;
  }

 private:
  // Not std::uniform_int_distribution, whose numbers depend on the library.
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % std::max<size_t>(1, limit)); }

  void Change(std::string& input) {
    const size_t at = Below(input.size() + 1);
    switch (Below(8)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
        return;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(Below(256));
        return;
      case 2:
        input.insert(at, 1, static_cast<char>(Below(256)));
        return;
      case 3:
        input.erase(at, 1 + Below(8));
        return;
      case 4:
        input.resize(at);
        return;
      case 5: {  // a piece of another input
        const std::string& other = corpus_[Below(corpus_.size())];
        const size_t from = Below(other.size() + 1);
        input.insert(at, other.substr(from, 1 + Below(64)));
        return;
      }
      case 6:  // a piece of itself again
        input.insert(at, input.substr(Below(input.size() + 1), 1 + Below(64)));
        return;
      default: {
        static constexpr std::array<uint64_t, 8> kEdges = {
            0, 1, 0x7f, 0x80, 0xffff, 0x7fffffff, 0x7fffffffffffffff, 0xffffffffffffffff};
        const uint64_t edge = kEdges[Below(kEdges.size())];
        const size_t size = std::min<size_t>(size_t{1} << Below(4), input.size() - at);
        std::memcpy(input.data() + at, &edge, size);
      }
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_{20240607};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && !(argc == 4 && std::string(argv[2]) == "--mutations")) {
    std::fprintf(stderr, "usage: %s CORPUS [--mutations N]\n", argv[0]);
    return 2;
  }
  KeepInputsThatBreakSomething();
  if (!std::filesystem::is_directory(argv[1])) {
    RunOne(ReadAll(argv[1]));
    return 0;
  }
  const std::vector<std::string> corpus = ReadCorpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "there is no input in %s\n", argv[1]);
    return 1;
  }
  RunOne("");
  for (const std::string& input : corpus) RunOne(input);
  const int mutations = argc == 4 ? std::atoi(argv[3]) : 0;
  Mutator mutator(corpus);
  for (int i = 0; i < mutations; ++i) RunOne(mutator.Next());
  std::printf("%zu inputs, %d mutations\n", corpus.size(), mutations);
  return 0;
}
