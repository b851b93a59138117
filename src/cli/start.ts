import type { Command } from "commander";
import type { CommandContext } from "./commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

export function addStartCommand(program: Command, { commands, terminal }: CommandContext): void {
  const command = program
    .command("start", { isDefault: true })
    .description("run the service: API, web app, worker and, unless DATABASE_URL is set, its database")
    .option("--host <address>", "address to listen on (default: OFFSTAGE_HOST, else 127.0.0.1)")
    .option("--port <number>", "port to listen on, 0 for any that is free (default: OFFSTAGE_PORT, else 4747)")
    .option("--sandbox <kind>", "bubblewrap, or none to run agents without one (default: OFFSTAGE_SANDBOX)");
  withDataFlag(command).action(async (options) => {
    await commands.start(serverFlags(options), terminal.signal);
  });
}
