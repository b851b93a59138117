import { Command, CommanderError } from "commander";
import { InvalidInputError, OffstageError } from "../domain/errors/errors.ts";
import { addBackupCommands } from "./backup.ts";
import type { CommandContext, Commands, Terminal } from "./commands.ts";
import { addDoctorCommand } from "./doctor.ts";
import { exitCodes, exitCodesHelp } from "./exit-code.ts";
import { addKeysCommand } from "./keys.ts";
import { addLoginLinkCommand } from "./login-link.ts";
import { addOrganizationCommand } from "./organization.ts";
import { addReplayCommand } from "./replay.ts";
import { addRunCommand } from "./run.ts";
import { addSecretsCommand } from "./secrets.ts";
import { addStartCommands } from "./start.ts";

/**
 * Parses the command line and runs the command. Never throws and never exits the process.
 * @param argv the arguments after the program's own name
 * @returns the exit code, see `exitCodes`
 */
export async function runProgram(
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
    const program = createProgram({ commands, terminal, finish }, version);
    requireCommand(program, argv[0]);
    await program.parseAsync([...argv], { from: "user" });
    return exitCode;
  } catch (error) {
    return report(error, terminal);
  }
}

function createProgram(context: CommandContext, version: string): Command {
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
  addStartCommands(program, context);
  addRunCommand(program, context);
  addReplayCommand(program, context);
  addDoctorCommand(program, context);
  addKeysCommand(program, context);
  addSecretsCommand(program, context);
  addBackupCommands(program, context);
  addLoginLinkCommand(program, context);
  addOrganizationCommand(program, context);
  return program;
}

/** Rejects unknown commands: otherwise `start`, the default command, would take the name as its own argument. */
function requireCommand(program: Command, name: string | undefined): void {
  if (name === undefined || name.startsWith("-") || name === "help") return;
  const names = program.commands.map((command) => command.name());
  if (!names.includes(name))
    program.error(`error: there is no command '${name}'; the commands are ${names.join(", ")}`);
}

function report(error: unknown, terminal: Terminal): number {
  // Commander has already printed its message. It also throws for --help and --version.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  if (error instanceof InvalidInputError) {
    terminal.warn(`offstage: ${error.message}\n`);
    return exitCodes.usage;
  }
  // An unexpected error is a bug of Offstage: its stack helps to find it.
  const text = error instanceof OffstageError ? error.message : error instanceof Error ? error.stack : String(error);
  terminal.warn(`offstage: ${text}\n`);
  return exitCodes.failed;
}
