import { InvalidArgumentError, type Command } from "commander";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { scopes, type Key, type Scope } from "../../domain/people/key.ts";
import { roles, scopesOf, type Role } from "../../domain/people/user.ts";
import type { CommandContext } from "../terminal/commands.ts";
import { printable } from "../../printable.ts";
import { collect } from "../terminal/collect.ts";
import { parseId } from "../terminal/id.ts";
import { organizationFlags, withOrganizationFlag } from "./server-flags.ts";

const dayMs = 24 * 60 * 60 * 1_000;

/** Adds the command `keys` with its subcommands. */
export function addKeysCommand(program: Command, context: CommandContext): void {
  const keys = program.command("keys").description("create, list and revoke API keys");
  addCreate(keys, context);
  addList(keys, context);
  addRevoke(keys, context);
}

function addCreate(keys: Command, { commands, terminal }: CommandContext): void {
  const command = keys
    .command("create")
    .description("create a key and print it, this once")
    .option("--name <name>", "what the key is for", "command line")
    .option("--scopes <list>", "trigger, read, write and admin, separated by commas (default: read,write)", parseScopes)
    .option("--role <role>", "admin, member or viewer, instead of scopes", parseRole)
    .option(
      "--automation <id...>",
      "ids of the automations that a key with --scopes trigger may start (default: all)",
      (value, before?: readonly string[]) => collect(parseId("an automation")(value), before),
    )
    .option("--owner <user>", "e-mail address or id of the user whose its sessions are (default: nobody)")
    .option("--expires-in-days <days>", "days until it expires (default: never)", parseDays);
  withOrganizationFlag(command).action(
    async (options: {
      name: string;
      scopes?: Scope[];
      role?: Role;
      automation?: string[];
      owner?: string;
      expiresInDays?: number;
    }) => {
      const expiresAt =
        options.expiresInDays === undefined ? null : new Date(Date.now() + options.expiresInDays * dayMs).toISOString();
      const { name, owner = null } = options;
      const chosen = options.role === undefined ? (options.scopes ?? ["read", "write"]) : [...scopesOf(options.role)];
      const automationIds = options.automation ?? null;
      if (automationIds !== null && chosen.join() !== "trigger") {
        throw new InvalidInputError("--automation goes with --scopes trigger alone");
      }
      const key = { name, scopes: chosen, automationIds, expiresAt, owner };
      const created = await commands.createKey(organizationFlags({ ...options }), key);
      // Only the key goes to stdout, so that a script can read it.
      terminal.write(`${created.key}\n`);
      terminal.warn(
        `${created.record.prefix}… (${created.record.scopes.join(", ")}) is shown only this once: keep it now\n`,
      );
    },
  );
}

function addList(keys: Command, { commands, terminal }: CommandContext): void {
  withOrganizationFlag(keys.command("list").description("list keys by their prefix")).action(async (options) => {
    const listed = await commands.listKeys(organizationFlags(options));
    terminal.write(listed.length === 0 ? "no keys\n" : keyTable(listed));
  });
}

function addRevoke(keys: Command, { commands, terminal }: CommandContext): void {
  const command = keys
    .command("revoke")
    .argument("<id>", "id from `keys list`", parseId("a key"))
    .description("revoke a key; it stops working at once");
  withOrganizationFlag(command).action(async (id: string, options) => {
    const revoked = await commands.revokeKey(organizationFlags(options), id);
    terminal.write(`revoked ${revoked.prefix}… (${oneLine(revoked.name)})\n`);
  });
}

/** Parses a list of scopes such as `read,write`. */
export function parseScopes(value: string): Scope[] {
  return value.split(",").map((part) => {
    const scope = scopes.find((known) => known === part.trim());
    if (scope === undefined)
      throw new InvalidArgumentError(
        `"${part}" is not a scope: use trigger, read, write and admin, separated by commas.`,
      );
    return scope;
  });
}

function parseRole(value: string): Role {
  const role = roles.find((known) => known === value);
  if (role === undefined) throw new InvalidArgumentError(`must be admin, member or viewer.`);
  return role;
}

function parseDays(value: string): number {
  const days = Number(value);
  if (!Number.isFinite(days) || days <= 0 || days > 36_500) {
    throw new InvalidArgumentError("must be a number of days between 0 and 36500.");
  }
  return days;
}

function keyTable(keys: readonly Key[]): string {
  const rows = keys.map((key) => [
    key.id,
    `${key.prefix}…`,
    key.scopes.join(","),
    stateOf(key),
    oneLine(key.owner?.name ?? "-"),
    oneLine(key.name),
  ]);
  const all = [["ID", "PREFIX", "SCOPES", "STATE", "OWNER", "NAME"], ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}\n`).join("");
}

const oneLine = (text: string): string => printable(text).replaceAll(/\s+/gu, " ");

function stateOf(key: Key): string {
  if (key.revokedAt !== null) return `revoked ${key.revokedAt}`;
  if (key.expiresAt === null) return "active";
  return Date.parse(key.expiresAt) <= Date.now() ? `expired ${key.expiresAt}` : `until ${key.expiresAt}`;
}
