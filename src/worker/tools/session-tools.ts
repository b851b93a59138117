import { z } from "zod";
import { messageOf, OffstageError } from "../../domain/errors/errors.ts";
import { problemOf } from "../../domain/errors/problem.ts";
import type { CallTool, ToolDescription } from "../../gateway/tools.ts";
import { programText } from "../../programs/program-text.ts";
import type { Attempt } from "../attempt/attempt.ts";
import { stateTools } from "./state-tools.ts";
import type { SessionTool, ToolServices } from "./tool.ts";

/** Tools as a gateway offers them. */
export interface OfferedTools {
  readonly list: readonly ToolDescription[];
  readonly call: CallTool;
}

/** The tools of a session: the list to which further ones are added. Empty if it has none. */
function toolsOf(attempt: Attempt, services: ToolServices): readonly SessionTool[] {
  const { automationId } = attempt.session;
  return automationId === null ? [] : stateTools(attempt, services, automationId);
}

/** The tools that the gateway offers to a session's agent. */
export function offeredTools(attempt: Attempt, services: ToolServices): OfferedTools {
  const tools = toolsOf(attempt, services);
  return {
    list: tools.map(({ name, description, input }) => {
      const { $schema: _dialect, ...inputSchema } = z.toJSONSchema(input);
      return { name, description, inputSchema };
    }),
    async call(name, given) {
      const tool = tools.find((each) => each.name === name);
      if (tool === undefined) return { text: "there is no such tool", isError: true };
      const input = tool.input.safeParse(given);
      if (!input.success) {
        const [issue] = input.error.issues;
        const field = issue?.path.join(".") ?? "";
        return {
          text: `${field === "" ? "arguments" : field}: ${issue === undefined ? "" : problemOf(issue)}`,
          isError: true,
        };
      }
      try {
        return { text: await tool.call(input.data), isError: false };
      } catch (error) {
        if (error instanceof OffstageError) return { text: error.message, isError: true };
        attempt.logger.error({ err: error, tool: name }, "a tool of a session failed");
        return { text: `could not be done now: ${attempt.mask.text(messageOf(error))}`, isError: true };
      }
    },
  };
}

/** A program that a harness starts in addition to itself, which offers it tools (Model Context Protocol, stdio). */
export interface ToolServer {
  readonly name: string;
  readonly command: string;
  readonly args: string[];
  readonly env: { readonly name: string; readonly value: string }[];
}

/**
 * The server of a session's tools as its harness starts it. It needs Node, as all that Offstage starts in a sandbox does.
 * @param gateway the session's, whose socket is at the same path inside
 */
export function toolServer(gateway: { readonly socket: string; readonly token: string }): ToolServer {
  return {
    name: "offstage",
    command: process.execPath,
    args: ["-e", programText(import.meta.url, "serve-tools.cjs")],
    env: [
      { name: "OFFSTAGE_TOOLS_SOCKET", value: gateway.socket },
      { name: "OFFSTAGE_TOOLS_TOKEN", value: gateway.token },
    ],
  };
}
