import type { Command } from "commander";
import type { CommandContext } from "../terminal/commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** Adds the commands `start`, `api` and `worker`: the whole service in one process, or one side of it as a node. */
export function addStartCommands(program: Command, context: CommandContext): void {
  const { commands, terminal } = context;
  const start = program
    .command("start", { isDefault: true })
    .description("run the service: API, web app, worker and, unless DATABASE_URL is set, its database");
  withDataFlag(withSandboxFlag(withAddressFlags(start))).action(async (options) => {
    await commands.start(serverFlags(options), terminal.signal, "all");
  });
  const api = program.command("api").description("run only the API and the web app, as one node of a fleet");
  withDataFlag(withSandboxFlag(withAddressFlags(api))).action(async (options) => {
    await commands.start(serverFlags(options), terminal.signal, "api");
  });
  const worker = program.command("worker").description("run only a worker, as one node of a fleet");
  withDataFlag(withSandboxFlag(worker)).action(async (options) => {
    await commands.start(serverFlags(options), terminal.signal, "worker");
  });
}

function withAddressFlags(command: Command): Command {
  return command
    .option("--host <address>", "address to listen on (default: OFFSTAGE_HOST or 127.0.0.1)")
    .option("--port <number>", "port to listen on; 0 takes any free port (default: OFFSTAGE_PORT or 4747)");
}

function withSandboxFlag(command: Command): Command {
  return command.option(
    "--sandbox <kind>",
    "bubblewrap, container, or none for no isolation (default: OFFSTAGE_SANDBOX or bubblewrap)",
  );
}
