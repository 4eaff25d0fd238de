#include "cli/shell_completion.h"

#include <functional>

#include <fmt/format.h>

namespace emplace::cli {
namespace {

// In single quotes, for any of the shells.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// The first sentence, without what shells give a meaning to.
std::string brief(const std::string& help) {
  constexpr std::size_t kMost = 72;
  std::string text = help.substr(0, std::min({help.find(". "), help.find("; "), help.find('\n')}));
  if (text.size() > kMost) {
    text.resize(text.rfind(' ', kMost));
    text += " ...";
  }
  for (char& c : text) {
    if (c == '[') c = '(';
    if (c == ']') c = ')';
    if (c == ':' || c == '`' || c == '$' || c == '\\') c = ' ';
  }
  return text;
}

// Every command with the words that choose it: "zoo export".
void for_each_command(const CommandOutline& outline, const std::string& words,
                      const std::function<void(const CommandOutline&, const std::string&)>& visit) {
  visit(outline, words);
  for (const CommandOutline& command : outline.commands) {
    for_each_command(command, words.empty() ? command.name : words + " " + command.name, visit);
  }
}

std::string identifier(std::string words) {
  for (char& c : words) {
    if (c == ' ' || c == '-') c = '_';
  }
  return words;
}

bool takes_file(const OptionOutline& option) {
  for (const char* value : {"FILE", "MODEL", "PLACEMENT", "CLUSTER", "FOLDER", "POLICY"}) {
    if (option.value == value) return true;
  }
  return false;
}

// Shells take values one by one; those of an argument by its place have the command's name alone.
std::string value_words(const OptionOutline& option) {
  return fmt::format("{}", fmt::join(option.choices, " "));
}

}  // namespace

std::string bash_completion(const CommandOutline& outline) {
  std::string words_of;
  std::string values_of;
  std::string takes_value;
  std::string takes_files;
  for_each_command(outline, "", [&](const CommandOutline& command, const std::string& words) {
    std::vector<std::string> offered;
    for (const CommandOutline& inner : command.commands) offered.push_back(inner.name);
    bool files = command.commands.empty();
    for (const OptionOutline& option : command.options) {
      offered.insert(offered.end(), option.names.begin(), option.names.end());
      if (option.names.empty()) {
        offered.insert(offered.end(), option.choices.begin(), option.choices.end());
        files = files && (option.choices.empty() || takes_file(option));
        continue;
      }
      if (option.value.empty()) continue;
      for (const std::string& name : option.names) {
        const std::string pattern = quoted(words + ":" + name);
        takes_value += fmt::format("    {}) return 0 ;;\n", pattern);
        if (takes_file(option) || option.choices.empty()) {
          takes_files += fmt::format("    {}) return 0 ;;\n", pattern);
        }
        if (option.choices.empty()) continue;
        values_of += fmt::format("    {}) echo {} ;;\n", pattern, quoted(value_words(option)));
      }
    }
    words_of += fmt::format("    {}) echo {} ;;\n", quoted(words),
                            quoted(fmt::format("{}", fmt::join(offered, " "))));
    if (files) takes_files += fmt::format("    {}) return 0 ;;\n", quoted(words));
  });
  std::string commands;
  for_each_command(outline, "", [&](const CommandOutline&, const std::string& words) {
    if (!words.empty()) commands += fmt::format("{}{}", commands.empty() ? "" : "|", quoted(words));
  });
  return fmt::format(R"bash(# bash completion of emplace: written by `emplace completion bash`.
_emplace_words() {{
  case "$1" in
{}  esac
}}
_emplace_values() {{
  case "$1" in
{}  esac
}}
_emplace_takes_value() {{
  case "$1" in
{}  esac
  return 1
}}
_emplace_takes_files() {{
  case "$1" in
{}  esac
  return 1
}}
_emplace() {{
  # Bash cuts words at =, : and @, which are put together again.
  local all=() i joins="" word
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    if [[ ${{#all[@]}} -gt 0 && ( "$word" == [:=@]* || ( -n "$joins" && -n "$word" ) ) ]]; then
      all[${{#all[@]}}-1]+="$word"
    else
      all+=("$word")
    fi
    [[ "$word" == *[:=@] ]] && joins=1 || joins=""
  done
  local last=$((${{#all[@]}} - 1))
  local current="${{all[last]}}" previous="${{all[last-1]}}" front=""
  local chosen="" next words="" key
  for ((i = 1; i < last; i++)); do
    next="${{chosen:+$chosen }}${{all[i]}}"
    case "$next" in
      {}) chosen="$next" ;;
    esac
  done
  if [[ "$current" == --*=* ]]; then
    previous="${{current%%=*}}"
    current="${{current#*=}}"
    [[ "$COMP_WORDBREAKS" == *=* ]] || front="$previous="
  fi
  key="$chosen:$previous"
  if _emplace_takes_value "$key"; then
    words="$(_emplace_values "$key")"
  else
    key="$chosen"
    for word in $(_emplace_words "$chosen"); do
      if [[ "$current" == -* ]]; then
        [[ "$word" == -* ]] && words="$words $word"
      else
        [[ "$word" == -* ]] || words="$words $word"
      fi
    done
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if _emplace_takes_files "$key"; then
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
  # What is before the last cut of the word stays, so it is not said again.
  local kept="" mark part
  for mark in : @; do
    [[ "$COMP_WORDBREAKS" == *$mark* && "$current" == *$mark* ]] || continue
    part="${{current%"${{current##*$mark}}"}}"
    [[ ${{#part}} -gt ${{#kept}} ]] && kept="$part"
  done
  for i in "${{!COMPREPLY[@]}}"; do
    COMPREPLY[i]="$front${{COMPREPLY[i]#"$kept"}}"
  done
}}
complete -o filenames -F _emplace emplace
)bash",
                     words_of, values_of, takes_value, takes_files, commands);
}

namespace {

// What zsh does to complete a value; colons would end it.
std::string zsh_action(const OptionOutline& option) {
  std::string values;
  for (const char c : value_words(option))
    values += c == ':' ? std::string("\\:") : std::string(1, c);
  if (!takes_file(option)) return values.empty() ? "" : "(" + values + ")";
  return values.empty() ? "_files" : "{compadd -- " + values + "; _files}";
}

}  // namespace

std::string zsh_completion(const CommandOutline& outline) {
  std::string functions;
  for_each_command(outline, "", [&](const CommandOutline& command, const std::string& words) {
    const std::string name = words.empty() ? "_emplace" : "_emplace_" + identifier(words);
    std::string body = fmt::format("{}() {{\n", name);
    std::string arguments = command.commands.empty() ? "  _arguments -S" : "  _arguments -S -C";
    int place = 0;
    for (const OptionOutline& option : command.options) {
      const std::string action = zsh_action(option);
      if (option.names.empty()) {
        arguments += fmt::format(" \\\n    {}",
                                 quoted(fmt::format("{}:{}:{}", ++place, option.value, action)));
        continue;
      }
      for (const std::string& option_name : option.names) {
        const std::string tail =
            option.value.empty() ? "" : fmt::format(":{}:{}", option.value, action);
        arguments +=
            fmt::format(" \\\n    {}", quoted(fmt::format("{}{}[{}]{}", option.repeats ? "*" : "",
                                                          option_name, brief(option.help), tail)));
      }
    }
    if (!command.commands.empty()) {
      body +=
          "  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n  local -a "
          "commands\n  commands=(\n";
      for (const CommandOutline& inner : command.commands) {
        body += fmt::format("    {}\n", quoted(inner.name + ":" + brief(inner.summary)));
      }
      body += "  )\n";
      arguments += " \\\n    '1: :->command' \\\n    '*:: :->rest'";
    }
    body += arguments + "\n";
    if (!command.commands.empty()) {
      body +=
          "  case $state in\n    command) _describe command commands ;;\n    rest)\n"
          "      case $line[1] in\n";
      for (const CommandOutline& inner : command.commands) {
        const std::string path = words.empty() ? inner.name : words + " " + inner.name;
        body += fmt::format("        {}) _emplace_{} ;;\n", inner.name, identifier(path));
      }
      body += "      esac ;;\n  esac\n";
    }
    functions += body + "}\n";
  });
  return "#compdef emplace\n# zsh completion of emplace: written by `emplace completion zsh`.\n" +
         functions + "_emplace \"$@\"\n";
}

std::string fish_completion(const CommandOutline& outline) {
  std::string commands;
  for_each_command(outline, "", [&](const CommandOutline&, const std::string& words) {
    if (!words.empty()) commands += " " + quoted(words);
  });
  std::string text =
      fmt::format(R"fish(# fish completion of emplace: written by `emplace completion fish`.
function __emplace_at
    set -l chosen
    set -l words (commandline -opc)
    for word in $words[2..-1]
        set -l next (string trim -- "$chosen $word")
        contains -- $next{}
        and set chosen $next
    end
    test "$chosen" = "$argv"
end
)fish",
                  commands);
  for_each_command(outline, "", [&](const CommandOutline& command, const std::string& words) {
    const std::string here = quoted(words.empty() ? "__emplace_at" : "__emplace_at " + words);
    for (const CommandOutline& child : command.commands) {
      text += fmt::format("complete -c emplace -f -n {} -a {} -d {}\n", here, child.name,
                          quoted(brief(child.summary)));
    }
    for (const OptionOutline& option : command.options) {
      std::string line = fmt::format("complete -c emplace -n {}", here);
      for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.names.empty() && option.choices.empty()) continue;
      if (!option.names.empty() && !option.value.empty()) line += " -r";
      if (!option.choices.empty()) {
        line +=
            fmt::format("{} -a {}", takes_file(option) ? "" : " -f", quoted(value_words(option)));
      }
      if (!option.names.empty()) line += " -d " + quoted(brief(option.help));
      text += line + "\n";
    }
  });
  return text;
}

namespace {

// Text of a manual: what roff gives a meaning to is escaped.
std::string roff(const std::string& text) {
  std::string result;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    line_start = c == '\n';
  }
  return result;
}

std::string roff_lines(const std::string& text) {
  std::string result;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    result += roff(text.substr(begin, end - begin)) + "\n.br\n";
    begin = end + 1;
  }
  return result;
}

std::string option_paragraph(const OptionOutline& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + roff(name) + "\\fR");
  std::string head = fmt::format("{}", fmt::join(names, ", "));
  if (!option.value.empty())
    head += (head.empty() ? "\\fI" : " \\fI") + roff(option.value) + "\\fR";
  return fmt::format(".TP\n{}\n{}\n", head, roff(option.help));
}

std::string synopsis(const CommandOutline& command, const std::string& words) {
  std::string text = fmt::format("\\fBemplace{}{}\\fR", words.empty() ? "" : " ", roff(words));
  if (!command.commands.empty()) text += " \\fICOMMAND\\fR";
  for (const OptionOutline& option : command.options) {
    if (!option.names.empty()) continue;
    const std::string value = "\\fI" + roff(option.value) + "\\fR";
    text += option.required ? " " + value : " [" + value + "]";
  }
  return text + " [\\fIOPTIONS\\fR]";
}

}  // namespace

std::string manual_page(const CommandOutline& outline, const std::string& version) {
  std::string text = fmt::format(
      ".\\\" Written by `emplace man`.\n.TH EMPLACE 1 \"\" \"emplace {}\" \"User Commands\"\n"
      ".SH NAME\nemplace \\- {}\n.SH SYNOPSIS\n\\fBemplace\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      roff(version), roff(outline.summary), roff(outline.summary));
  for_each_command(outline, "", [&](const CommandOutline& command, const std::string& words) {
    if (words.empty()) return;
    text += fmt::format(".SS {}\n{}\n.PP\n{}\n", synopsis(command, words), roff(command.summary),
                        ".PP");
    for (const OptionOutline& option : command.options) {
      const bool help = !option.names.empty() && option.names.back() == "--help";
      if (!help) text += option_paragraph(option);
    }
    if (!command.footer.empty()) text += ".PP\n" + roff_lines(command.footer);
  });
  text += ".SH OPTIONS\n";
  for (const OptionOutline& option : outline.options) text += option_paragraph(option);
  text += ".SH NOTES\n" + roff_lines(outline.footer);
  text +=
      ".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nSet to anything, no colours are used.\n"
      ".TP\n\\fBTERM\\fR\nWhere it is dumb, progress is plain lines.\n"
      ".TP\n\\fBLC_ALL, LC_CTYPE, LANG\\fR\nWithout UTF\\-8, bars and lines are ASCII.\n";
  return text;
}

}  // namespace emplace::cli
