import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Action, Script } from "../model/server.ts";

/**
 * The scripted model obeys its prompts: `write <path>: <content>`, `shell <command>`, `say <text>`, `fail <status>`,
 * several joined by `, then `. What stands around the order is left aside.
 */
export const script: Script = obey;

/** The same, which adds to a list what each request says. */
export function recordedScript(requests: string[]): Script {
  return (message, conversation) => {
    requests.push(conversation.everything);
    return obey(message);
  };
}

/** What `script` does on one message. */
export function obey(message: string): Action[] {
  const order = /^(?:write|shell|say|fail) [^\n]*/mu.exec(message)?.[0];
  const actions = (order ?? "say I was asked nothing that I know.").split(", then ").map(actionOf);
  return [...actions, { say: `Did as asked: ${(order ?? "").slice(0, 100)}` }];
}

function actionOf(order: string): Action {
  const [, verb = "", rest = ""] = /^(\w+) (.*)$/su.exec(order) ?? [];
  switch (verb) {
    case "write": {
      const colon = rest.indexOf(": ");
      return { write: { path: rest.slice(0, colon), content: rest.slice(colon + 2) } };
    }
    case "shell":
      return { shell: rest };
    case "fail":
      return { fail: { status: Number(rest), message: "the scripted model fails" } };
    default:
      return { say: rest };
  }
}

/** The same, but that commands take no time any more once `isLetGo`: what waits in one until then is asked anew after its worker died. */
export const waitingScript =
  (isLetGo: () => boolean): Script =>
  (message) =>
    obey(message).map((action) => ("shell" in action && isLetGo() ? { shell: "true" } : action));

/** A command in a clone that ends once `letGo` was called for it. */
export const untilLetGo = "until [ -e .git/go ]; do sleep 0.1; done";

/** Ends `untilLetGo` in a session's clone. @param data the folder of the server's data. @param repository the clone's folder */
export function letGo(data: string, sessionId: string, repository: string): Promise<void> {
  return writeFile(join(data, "sessions", sessionId, "workspace", repository, ".git/go"), "");
}

/** A shell's commands as one line, as an order has them; `(` and `)` that stand alone in a line keep their meaning. */
export function inOneLine(commands: string): string {
  return commands.replaceAll("\n", "; ").replaceAll("; (; ", "; (").replaceAll("; ); ", "); ");
}
