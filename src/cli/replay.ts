import type { Command } from "commander";
import type { CommandContext } from "./commands.ts";
import { createEventLines, shade } from "./event-lines.ts";
import { exitCodes } from "./exit-code.ts";
import { parseId } from "./id.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

export function addReplayCommand(program: Command, { commands, terminal, finish }: CommandContext): void {
  const command = program
    .command("replay")
    .argument("<session>", "id of a session that ran with OFFSTAGE_RECORD=true", parseId("a session"))
    .description("carry a recorded session out once more with its model's recorded answers, on the server's machine");
  withDataFlag(command).action(async (id: string, flags) => {
    const lines = createEventLines(terminal.color);
    let seq = 0;
    const { different, unused } = await commands.replay(serverFlags(flags), id, {
      onEvent: (event) => terminal.write(lines.of({ ...event, seq: (seq += 1), createdAt: new Date().toISOString() })),
      signal: terminal.signal,
    });
    terminal.write(lines.rest());
    if (unused > 0) terminal.warn(`${unused} recorded ${unused === 1 ? "answer was" : "answers were"} not asked for\n`);
    if (different.length === 0) {
      terminal.write(`${shade("green", "The same changes as in the session.", terminal.color)}\n`);
      return;
    }
    terminal.write(`${shade("red", `Other changes than in the session: ${different.join(", ")}`, terminal.color)}\n`);
    finish(exitCodes.failed);
  });
}
