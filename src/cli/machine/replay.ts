import type { Command } from "commander";
import type { CommandContext } from "../terminal/commands.ts";
import { createEventLines, shade } from "../../event-lines.ts";
import { exitCodes } from "../terminal/exit-code.ts";
import { parseId } from "../terminal/id.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** Adds the command `replay`. */
export function addReplayCommand(program: Command, { commands, terminal, finish }: CommandContext): void {
  const command = program
    .command("replay")
    .argument("<session>", "id of a session that ran with OFFSTAGE_RECORD=true", parseId("a session"))
    .description("run a recorded session again with the recorded answers of its model");
  withDataFlag(command).action(async (id: string, flags) => {
    const lines = createEventLines(terminal.color);
    let seq = 0;
    const { different, unused } = await commands.replay(serverFlags(flags), id, {
      onEvent: (event) => terminal.write(lines.of({ ...event, seq: (seq += 1), createdAt: new Date().toISOString() })),
      signal: terminal.signal,
    });
    terminal.write(lines.rest());
    if (unused > 0) terminal.warn(`${unused} recorded ${unused === 1 ? "answer was" : "answers were"} not used\n`);
    if (different.length === 0) {
      terminal.write(`${shade("green", "The changes are the same as the session's.", terminal.color)}\n`);
      return;
    }
    terminal.write(
      `${shade("red", `The changes differ from the session's: ${different.join(", ")}`, terminal.color)}\n`,
    );
    finish(exitCodes.failed);
  });
}
