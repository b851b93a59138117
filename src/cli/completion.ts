import { Argument, type Command } from "commander";
import type { CommandContext } from "./terminal/commands.ts";

/** Shells that commands can be completed in. */
const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** Adds the command `completion`, which knows every command that the program has by then. */
export function addCompletionCommand(program: Command, { terminal }: CommandContext): void {
  program
    .command("completion")
    .addArgument(new Argument("<shell>", "which shell").choices(shells))
    .description("print a script that completes commands and flags in a shell")
    .addHelpText(
      "after",
      '\nFor bash and zsh: eval "$(offstage completion bash)"; for fish: offstage completion fish | source',
    )
    .action((shell: Shell) => terminal.write(completion(program, shell)));
}

/** A command's words, such as `automations list`, with what may follow them. */
interface Entry {
  readonly words: string;
  readonly next: readonly { readonly word: string; readonly about: string }[];
}

function entries(command: Command, words = ""): Entry[] {
  const own = [
    ...command.commands.map((each) => ({ word: each.name(), about: each.description() })),
    ...command.options.flatMap(({ long, description }) =>
      long === undefined || long === null ? [] : [{ word: long, about: description }],
    ),
    { word: "--help", about: "print what it does" },
  ];
  const below = command.commands.flatMap((each) => entries(each, `${words} ${each.name()}`.trim()));
  return [{ words, next: own }, ...below];
}

/** @returns the shell's script; every word in it is a name of ours, of letters, digits and dashes */
export function completion(program: Command, shell: Shell): string {
  const all = entries(program);
  return shell === "fish" ? fish(all) : bash(all, shell);
}

function bash(all: readonly Entry[], shell: "bash" | "zsh"): string {
  const commands = all.flatMap(({ words }) => (words === "" ? [] : [`"${words}"`]));
  const cases = all.map(({ words, next }) => `    "${words}") next="${next.map(({ word }) => word).join(" ")}" ;;`);
  return [
    ...(shell === "zsh" ? ["autoload -U +X bashcompinit && bashcompinit"] : []),
    "_offstage() {",
    '  local word words="" next=""',
    '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
    '    case "${words:+$words }$word" in',
    `      ${commands.join("|")}) words="\${words:+$words }$word" ;;`,
    "    esac",
    "  done",
    '  case "$words" in',
    ...cases,
    "  esac",
    '  COMPREPLY=($(compgen -W "$next" -- "${COMP_WORDS[COMP_CWORD]}"))',
    "}",
    "complete -o default -F _offstage offstage",
    "",
  ].join("\n");
}

function fish(all: readonly Entry[]): string {
  const quoted = (text: string): string => `'${text.replaceAll(/[\\']/gu, String.raw`\$&`)}'`;
  const commands = all.flatMap(({ words }) => (words === "" ? [] : [quoted(words)]));
  const lines = all.flatMap(({ words, next }) =>
    next.map(({ word, about }) => {
      const at = `-n ${quoted(`test "$(__offstage_words)" = "${words}"`)}`;
      const offered = word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`;
      return `complete -c offstage ${at} ${offered} -d ${quoted(about)}`;
    }),
  );
  return [
    "function __offstage_words",
    "  set -l words",
    "  for word in (commandline -opc)[2..-1]",
    `    if contains -- (string join ' ' $words $word) ${commands.join(" ")}`,
    "      set words $words $word",
    "    end",
    "  end",
    "  string join ' ' $words",
    "end",
    "complete -c offstage -f",
    ...lines,
    "",
  ].join("\n");
}
