import type { Command } from "commander";
import type { OrganizationFlag, ServerFlags } from "../terminal/commands.ts";

/** Adds `--data`, which every command on the server's machine takes: it selects the installation. */
export function withDataFlag(command: Command): Command {
  return command.option(
    "--data <directory>",
    "folder of the server's data (default: OFFSTAGE_DATA, else ./.offstage or one that works)",
  );
}

/** Adds `--organization`, for commands on keys and links, which belong to one organization. */
export function withOrganizationFlag(command: Command): Command {
  return withDataFlag(command).option(
    "--organization <name>",
    "name of the organization (default: the server's own, `default`)",
  );
}

/** As `serverFlags`, with the organization. */
export function organizationFlags(options: Readonly<Record<string, unknown>>): ServerFlags & OrganizationFlag {
  const { organization } = options;
  return { ...serverFlags(options), ...(typeof organization === "string" && { organization }) };
}

/** Picks the flags that are shared by the commands on the server's machine. */
export function serverFlags(options: Readonly<Record<string, unknown>>): ServerFlags {
  const named = ["data", "host", "port", "sandbox"] as const;
  return Object.fromEntries(named.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]));
}
