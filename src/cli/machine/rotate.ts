import type { Command } from "commander";
import type { CommandContext } from "./commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** Adds the command `secrets` with its subcommand. */
export function addSecretsCommand(program: Command, { commands, terminal }: CommandContext): void {
  const secrets = program.command("secrets").description("manage the master key that seals secrets");
  const rotate = secrets.command("rotate").description("seal every secret with a new master key; the server may run");
  withDataFlag(rotate).action(async (options) => {
    const count = await commands.rotateMasterKey(serverFlags(options));
    terminal.write(
      `${count} ${count === 1 ? "secret is" : "secrets are"} sealed with the new key; keep the old key for old backups\n`,
    );
  });
}
