import { styleText } from "node:util";
import type { Command } from "commander";
import type { Check, CommandContext, Terminal } from "../terminal/commands.ts";
import { exitCodes } from "../terminal/exit-code.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** Adds the command `doctor`. */
export function addDoctorCommand(program: Command, { commands, terminal, finish }: CommandContext): void {
  const command = program
    .command("doctor")
    .description("check what this machine has and lacks, and say how to fix it; exit code 1 if something is missing")
    .option("--sandbox <kind>", "check this kind of sandbox (default: OFFSTAGE_SANDBOX or bubblewrap)");
  withDataFlag(command).action(async (options) => {
    const checks = await commands.doctor(serverFlags(options));
    terminal.write(checklist(checks, terminal));
    finish(checks.every((check) => check.ok || check.optional === true) ? exitCodes.ok : exitCodes.failed);
  });
}

/** Formats checks as one line each, with the remedy below it. */
export function checklist(checks: readonly Check[], terminal: Pick<Terminal, "color">): string {
  const width = Math.max(0, ...checks.map((check) => check.name.length));
  return checks.map((check) => checkLines(check, width, terminal.color)).join("");
}

function checkLines(check: Check, width: number, color: boolean): string {
  const word = check.ok ? "ok" : check.optional === true ? "absent" : "missing";
  const shade = check.ok ? "green" : check.optional === true ? "dim" : "red";
  const padded = word.padEnd(7);
  const state = color ? styleText(shade, padded, { validateStream: false }) : padded;
  const line = `${state}  ${check.name.padEnd(width)}  ${check.detail}`.trimEnd();
  return check.remedy === null ? `${line}\n` : `${line}\n${" ".repeat(width + 11)}→ ${check.remedy}\n`;
}
