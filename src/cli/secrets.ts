import type { Command } from "commander";
import type { CommandContext } from "./commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

export function addSecretsCommand(program: Command, { commands, terminal }: CommandContext): void {
  const secrets = program
    .command("secrets")
    .description("care for what secrets are sealed with, on the server's machine");
  const rotate = secrets
    .command("rotate")
    .description("seal every secret with a new master key; a running server need not be stopped");
  withDataFlag(rotate).action(async (options) => {
    const count = await commands.rotateMasterKey(serverFlags(options));
    terminal.write(
      `${count} ${count === 1 ? "secret is" : "secrets are"} sealed anew; keep the old key with old backups\n`,
    );
  });
}
