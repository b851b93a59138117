import { Command, CommanderError } from "commander";
import { InvalidInputError, OffstageError } from "../domain/errors/errors.ts";
import { addAutomationCommands } from "./automations/automations.ts";
import { addLedgerCommand } from "./automations/ledger.ts";
import { addCompletionCommand } from "./completion.ts";
import { addAcpCommand } from "./for-agents/acp.ts";
import { addMcpCommand } from "./for-agents/mcp.ts";
import { addBackupCommands } from "./machine/backup.ts";
import type { CommandContext, Commands, Terminal } from "./terminal/commands.ts";
import { addDoctorCommand } from "./machine/doctor.ts";
import { printable } from "../printable.ts";
import { exitCodes, exitCodesHelp } from "./terminal/exit-code.ts";
import { addKeysCommand } from "./machine/keys.ts";
import { addLoginLinkCommand } from "./machine/login-link.ts";
import { addOrganizationCommand } from "./machine/organization.ts";
import { addReplayCommand } from "./machine/replay.ts";
import { addLoginCommands } from "./remote/login.ts";
import { addRepositoriesCommand } from "./repositories/repositories.ts";
import { addSecretsCommands } from "./repositories/secrets.ts";
import { addChangeCommands } from "./sessions/change.ts";
import { addFollowCommand } from "./sessions/follow.ts";
import { addInsightCommand } from "./sessions/insight.ts";
import { addLabelCommands } from "./sessions/labels.ts";
import { addListCommand } from "./sessions/list.ts";
import { addOpenCommand } from "./sessions/open.ts";
import { addPatchCommands } from "./sessions/patches.ts";
import { addRunCommand } from "./sessions/run.ts";
import { addShowCommand } from "./sessions/show.ts";
import { addTranscriptCommand } from "./sessions/transcript.ts";
import { addRotateCommand } from "./machine/rotate.ts";
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
    const program = createProgram({ commands, terminal, finish }, version);
    requireCommand(program, argv[0]);
    await program.parseAsync([...argv], { from: "user" });
    return exitCode;
  } catch (error) {
    // Somebody pressed Ctrl-C, or reads no further: they know.
    if (terminal.signal.aborted && isAbort(error)) return exitCodes.interrupted;
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
  program.commandsGroup("A server:");
  addStartCommands(program, context);
  addDoctorCommand(program, context);
  addKeysCommand(program, context);
  addLoginLinkCommand(program, context);
  addBackupCommands(program, context);
  addOrganizationCommand(program, context);
  addReplayCommand(program, context);
  program.commandsGroup("Sessions:");
  addRunCommand(program, context);
  addListCommand(program, context);
  addShowCommand(program, context);
  addFollowCommand(program, context);
  addChangeCommands(program, context);
  addPatchCommands(program, context);
  addTranscriptCommand(program, context);
  addLabelCommands(program, context);
  addOpenCommand(program, context);
  addInsightCommand(program, context);
  program.commandsGroup("Automations, repositories, secrets:");
  addAutomationCommands(program, context);
  addLedgerCommand(program, context);
  addRepositoriesCommand(program, context);
  const secrets = program.command("secrets").description("keep secrets for sessions, and seal them with a new key");
  addSecretsCommands(secrets, context);
  addRotateCommand(secrets, context);
  program.commandsGroup("Other agents:");
  addMcpCommand(program, context, version);
  addAcpCommand(program, context, version);
  program.commandsGroup("This machine:");
  addLoginCommands(program, context);
  addCompletionCommand(program, context);
  return program;
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
