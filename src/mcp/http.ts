import { createMcpHandler, type AuthInfo } from "@modelcontextprotocol/server";
import type { Client } from "../client.ts";
import type { Caller } from "./parts.ts";
import { createOffstageMcp } from "./server.ts";
import { loadSkills } from "./skills.ts";

/** One authenticated HTTP request to the MCP server. */
export interface McpCall {
  readonly request: Request;
  /** The request's body, parsed. */
  readonly body: unknown;
  /** The API, as the caller. */
  readonly client: Client;
  readonly caller: Caller;
}

/** The MCP server over streamable HTTP. */
export interface McpEndpoint {
  /** Answers one request, without state. */
  answer(call: McpCall): Promise<Response>;
  /** Ends what is under way. */
  close(): Promise<void>;
}

/**
 * Makes the MCP server over streamable HTTP, in both current revisions of the protocol: 2026-07-28, whose requests are independent of
 * each other, and 2025-11-25 and before, which begin with a handshake of which nothing need be remembered here.
 */
export async function createMcpEndpoint(options: {
  readonly version: string;
  /** Called with what should not happen; the caller learns only that it did. */
  readonly onBug: (error: Error) => void;
  /** Called for requests that are not of the protocol. */
  readonly onRefusal: (error: Error) => void;
}): Promise<McpEndpoint> {
  const skills = await loadSkills();
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const call = authInfo?.extra?.["call"] as McpCall;
      return createOffstageMcp({
        version: options.version,
        onError: options.onBug,
        skills,
        client: call.client,
        caller: call.caller,
      });
    },
    { onerror: options.onRefusal },
  );
  return {
    answer(call) {
      const { caller } = call;
      const authInfo: AuthInfo = {
        // Tools have the API as the caller, and need no credential.
        token: "",
        clientId: "",
        scopes: [...caller.scopes],
        resourceMetadataUrl: caller.metadataUrl,
        extra: { call },
      };
      return handler.fetch(call.request, { authInfo, ...(call.body !== undefined && { parsedBody: call.body }) });
    },
    close: () => handler.close(),
  };
}
