import type { Command } from "commander";
import type { CommandContext } from "./commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** The whole service as one program, or one side of it for a fleet. */
export function addStartCommands(program: Command, context: CommandContext): void {
  const { commands, terminal } = context;
  const start = program
    .command("start", { isDefault: true })
    .description("run the service: API, web app, worker and, unless DATABASE_URL is set, its database");
  withDataFlag(withSandboxFlag(withAddressFlags(start))).action(async (options) => {
    await commands.start(serverFlags(options), terminal.signal, "all");
  });
  const api = program.command("api").description("run the API and the web app alone, of as many as are wanted");
  withDataFlag(withSandboxFlag(withAddressFlags(api))).action(async (options) => {
    await commands.start(serverFlags(options), terminal.signal, "api");
  });
  const worker = program.command("worker").description("run a worker alone, of as many as are wanted");
  withDataFlag(withSandboxFlag(worker)).action(async (options) => {
    await commands.start(serverFlags(options), terminal.signal, "worker");
  });
}

function withAddressFlags(command: Command): Command {
  return command
    .option("--host <address>", "address to listen on (default: OFFSTAGE_HOST, else 127.0.0.1)")
    .option("--port <number>", "port to listen on, 0 for any that is free (default: OFFSTAGE_PORT, else 4747)");
}

function withSandboxFlag(command: Command): Command {
  return command.option(
    "--sandbox <kind>",
    "bubblewrap, container, or none to run agents without one (default: OFFSTAGE_SANDBOX)",
  );
}
