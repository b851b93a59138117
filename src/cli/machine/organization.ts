import type { Command } from "commander";
import type { CommandContext } from "../terminal/commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** Adds the command `organization` with its subcommands. */
export function addOrganizationCommand(program: Command, { commands, terminal }: CommandContext): void {
  const organization = program.command("organization").description("export or erase all data of an organization");
  const exported = organization
    .command("export")
    .argument("<name>", "the organization's name; the first one is `default`")
    .argument("<file>", "tar archive to write; it must not exist yet")
    .description("write all data of an organization, without any secret, to one archive; the server may run");
  withDataFlag(exported).action(async (name: string, file: string, flags) => {
    const { bytes } = await commands.exportOrganization(serverFlags(flags), { name, file }, terminal.signal);
    terminal.write(`Exported ${name} to ${file} (${Math.ceil(bytes / 1_000)} kB). No secret is in it.\n`);
  });
  const erased = organization
    .command("erase")
    .argument("<name>", "the organization's name, which confirms that it is meant")
    .description("erase an organization with all that there is of it, which can't be undone; the server may run");
  withDataFlag(erased).action(async (name: string, flags) => {
    const wasThere = await commands.eraseOrganization(serverFlags(flags), name, terminal.signal);
    const erasedNow = wasThere
      ? `Erased ${name}.`
      : `There is no organization ${name}; erased what had begun to be erased.`;
    terminal.write(
      `${erasedNow} What it pushed stays on its forges, and backups keep what they have.\n` +
        "The next start of the server makes an organization `default` if there is none, with a new admin key.\n",
    );
  });
}
