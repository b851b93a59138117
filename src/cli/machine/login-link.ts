import { InvalidArgumentError, type Command } from "commander";
import type { Scope } from "../../domain/people/key.ts";
import type { CommandContext } from "../terminal/commands.ts";
import { parseScopes } from "./keys.ts";
import { organizationFlags, withOrganizationFlag } from "./server-flags.ts";

const minuteMs = 60_000;
const longestMinutes = 7 * 24 * 60;

/** Adds the command `login-link`. */
export function addLoginLinkCommand(program: Command, { commands, terminal }: CommandContext): void {
  const command = program
    .command("login-link")
    .description("print a link that signs one browser in, once")
    .option("--scopes <list>", "read, write and admin, separated by commas (default: all three)", parseScopes)
    .option("--minutes <number>", "how long the link works", parseMinutes, 60);
  withOrganizationFlag(command).action(async (options: { scopes?: Scope[]; minutes: number }) => {
    const link = { scopes: options.scopes ?? ["read", "write", "admin"], ttlMs: options.minutes * minuteMs };
    terminal.write(`${await commands.createLoginLink(organizationFlags({ ...options }), link)}\n`);
  });
}

function parseMinutes(value: string): number {
  const minutes = Number(value);
  if (!Number.isInteger(minutes) || minutes < 1 || minutes > longestMinutes) {
    throw new InvalidArgumentError(`must be a whole number from 1 to ${longestMinutes}.`);
  }
  return minutes;
}
