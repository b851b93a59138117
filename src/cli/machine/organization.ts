import type { Command } from "commander";
import { mostSessionsCounted, type ListedOrganization } from "../../domain/people/organization.ts";
import { printable } from "../../printable.ts";
import { age, table } from "../terminal/table.ts";
import type { CommandContext } from "../terminal/commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** Adds the command `organization` with its subcommands. */
export function addOrganizationCommand(program: Command, context: CommandContext): void {
  const { commands, terminal } = context;
  const organization = program.command("organization").description("create, list, export and erase organizations");
  addCreate(organization, context);
  addList(organization, context);
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

function addCreate(organization: Command, { commands, terminal }: CommandContext): void {
  const command = organization
    .command("create")
    .argument("<name>", "the organization's name, as its people see it")
    .option("--admin <name>", "name of its first admin, who gets a link (default: an admin key is printed instead)")
    .option("--email <address>", "e-mail address of that admin, to which the link is mailed if there is a mail server")
    .option("--server-forges", "let it use this server's access to forges: tokens, ssh keys, local repositories")
    .description("create an organization and print what lets its first admin in, this once");
  withDataFlag(command).action(
    async (name: string, options: { admin?: string; email?: string; serverForges?: true }) => {
      const { admin = options.email, email } = options;
      const person = admin === undefined ? null : { name: admin, ...(email !== undefined && { email }) };
      const made = await commands.createOrganization(serverFlags({ ...options }), {
        name,
        admin: person,
        usesServerForges: options.serverForges ?? false,
      });
      const { invitation } = made;
      // Only the secret goes to stdout, so that a script can read it.
      terminal.write(`${invitation?.url ?? made.adminKey}\n`);
      const mailed = invitation?.mailedTo == null ? "" : `, and is mailed to ${printable(invitation.mailedTo)}`;
      terminal.warn(
        invitation === null
          ? `Created ${printable(made.name)}. Its admin key is shown only this once: keep it now.\n`
          : `Created ${printable(made.name)}. The link signs its admin in, once, until ${invitation.expiresAt}${mailed}.\n`,
      );
    },
  );
}

function addList(organization: Command, { commands, terminal }: CommandContext): void {
  const command = organization.command("list").description("list organizations, with how much they are used");
  withDataFlag(command).action(async (flags) => {
    const all = await commands.listOrganizations(serverFlags(flags));
    const columns = [
      { heading: "NAME", of: ({ name }: ListedOrganization) => name, shrinks: true },
      { heading: "MEMBERS", of: ({ members }: ListedOrganization) => String(members) },
      { heading: "SESSIONS", of: ({ sessions }: ListedOrganization) => countOf(sessions) },
      {
        heading: "LAST SESSION",
        of: ({ lastSessionAt }: ListedOrganization) => (lastSessionAt === null ? "-" : age(lastSessionAt, new Date())),
      },
      { heading: "ID", of: ({ id }: ListedOrganization) => id },
    ];
    terminal.write(table(all, columns, { width: terminal.columns, color: terminal.color }));
  });
}

const countOf = (sessions: number): string => (sessions === mostSessionsCounted ? `${sessions}+` : String(sessions));
