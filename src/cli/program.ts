import { Command, CommanderError } from "commander";
import { InvalidInputError, OffstageError } from "../domain/errors/errors.ts";
import type { CommandContext, Commands, Terminal } from "./terminal/commands.ts";
import { printable } from "../printable.ts";
import { exitCodes, exitCodesHelp } from "./terminal/exit-code.ts";
import { addStartCommands } from "./machine/start.ts";

/**
 * Parses the command line and runs the command. Never throws and never exits the process.
 * @param argv the arguments after the program's own name
 * @returns the exit code, see `exitCodes`
 */
export async function runCommandLine(
  commands: Commands,
  terminal: Terminal,
  version: string,
  argv: readonly string[],
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const finish = (code: number): void => {
    exitCode = code;
  };
  try {
    const program = await createProgram({ commands, terminal, finish }, version, argv);
    requireCommand(program, argv[0]);
    await program.parseAsync([...argv], { from: "user" });
    return exitCode;
  } catch (error) {
    // The user pressed Ctrl-C or closed the output: no message is needed.
    if (terminal.signal.aborted && isAbort(error)) return exitCodes.interrupted;
    return report(error, terminal);
  }
}

async function createProgram(context: CommandContext, version: string, argv: readonly string[]): Promise<Command> {
  const { terminal } = context;
  const program = new Command("offstage")
    .description("Self-hosted background coding agents: a prompt in, one pull request out.")
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.write(text),
      writeErr: (text) => terminal.warn(text),
      getOutHasColors: () => terminal.color,
      getErrHasColors: () => terminal.color,
    })
    .showHelpAfterError("(see --help)")
    .addHelpText("afterAll", exitCodesHelp);
  program.commandsGroup("A server:");
  addStartCommands(program, context);
  // A server's start waits for all that is loaded before its database.
  if (!isNamed(program, argv[0])) {
    const { addOtherCommands } = await import("./other-commands.ts");
    addOtherCommands(program, context, version);
  }
  return program;
}

/** Whether the program has the command by now. Without a name it has: `start` is the default. */
function isNamed(program: Command, name: string | undefined): boolean {
  return name === undefined || program.commands.some((command) => command.name() === name);
}

/** Rejects unknown commands: otherwise `start`, the default command, would take the name as its own argument. */
function requireCommand(program: Command, name: string | undefined): void {
  if (name === undefined || name.startsWith("-") || name === "help") return;
  const names = program.commands.map((command) => command.name());
  if (!names.includes(name))
    program.error(`error: there is no command '${name}'; the commands are ${names.join(", ")}`);
}

/** Whether an error says that its work was given up, as those of `fetch`, of processes and of streams do. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function report(error: unknown, terminal: Terminal): number {
  // Commander has already printed its message. It also throws for --help and --version.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  if (error instanceof InvalidInputError) {
    terminal.warn(`offstage: ${printable(error.message)}\n`);
    return exitCodes.usage;
  }
  // An unexpected error is a bug of Offstage: its stack helps to find it.
  const text = error instanceof OffstageError ? error.message : error instanceof Error ? error.stack : String(error);
  // The words of a server, a forge or a remote of git may be in it.
  terminal.warn(`offstage: ${printable(text ?? "")}\n`);
  return exitCodes.failed;
}
