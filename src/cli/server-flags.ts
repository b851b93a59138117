import type { Command } from "commander";
import type { ServerFlags } from "./commands.ts";

/** Adds `--data`, which every command on the server's machine takes: it says which installation is meant. */
export function withDataFlag(command: Command): Command {
  return command.option("--data <directory>", "folder of the server's data (default: OFFSTAGE_DATA or ./.offstage)");
}

export function serverFlags(options: Readonly<Record<string, unknown>>): ServerFlags {
  const named = ["data", "host", "port", "sandbox"] as const;
  return Object.fromEntries(named.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]));
}
