import type { Command } from "commander";
import type { CommandContext } from "../terminal/commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** Adds `rotate` to the command `secrets`. */
export function addRotateCommand(secrets: Command, { commands, terminal }: CommandContext): void {
  const rotate = secrets.command("rotate").description("seal every secret with a new master key; the server may run");
  withDataFlag(rotate).action(async (options) => {
    const count = await commands.rotateMasterKey(serverFlags(options));
    terminal.write(
      `${count} ${count === 1 ? "secret is" : "secrets are"} sealed with the new key; keep the old key for old backups\n`,
    );
  });
}
