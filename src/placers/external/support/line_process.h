// Another program that is spoken to line by line, over its standard input and output. What it
// writes to standard error goes where ours goes.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace emplace {

// A command's words: separated by spaces, with '...' and "..." around what has spaces itself and a
// backslash before what shall have no meaning. No shell reads it: there are no variables, patterns
// or pipes. Throws an Error where a quotation does not end, or where there is no word.
std::vector<std::string> command_words(std::string_view command);

class LineProcess {
 public:
  // The program is looked for in PATH. Throws an Error when it cannot be started.
  explicit LineProcess(const std::vector<std::string>& words);
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;
  // Ends it and whatever it has started, at once.
  ~LineProcess();

  // Does not wait until the line is taken.
  void send(std::string_view line);
  // Bytes of that which it has not taken yet.
  std::size_t unsent() const { return unsent_.size() - sent_; }

  enum class Got { kLine, kEnd, kTooLong, kNothing };
  // Waits for a line, without its end; kEnd where no more will come. `give_up` is asked now and
  // then: where it says so, kNothing.
  Got receive(std::string& line, const std::function<bool()>& give_up);

  // Says that nothing more will be sent, and waits so long for it to end by itself.
  void finish(double seconds);
  // "ended with exit code 3", "was ended by signal 11 (Segmentation fault)", "closed its standard
  // output"; waits a little for it to end.
  std::string how_it_ended();

 private:
  void start(const std::vector<std::string>& words, int its_input, int its_output);
  bool take_line(std::string& line);
  void write_some();
  bool ready_to_read() const;
  // Whether there may be more.
  bool read_some();
  bool wait_until_ended(double seconds);

  pid_t pid_ = -1;
  siginfo_t end_ = {};  // how it ended
  int to_ = -1;         // its standard input
  int from_ = -1;       // its standard output
  std::string unsent_;
  std::size_t sent_ = 0;  // of that
  std::string received_;
  std::size_t searched_ = 0;  // of what was received: no line end before this
  bool ended_ = false;        // its output
};

}  // namespace emplace
