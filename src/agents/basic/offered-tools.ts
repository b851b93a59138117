import type { McpServer } from "@agentclientprotocol/sdk";
import { createMCPClient, type CallToolResult, type MCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { tool, type ToolSet } from "ai";
import { asText, type ToolOutcome } from "./tools.ts";

/** Tools that other programs offer the agent by the Model Context Protocol. */
export interface ConnectedTools {
  readonly tools: ToolSet;
  /** Ends the programs. */
  close(): Promise<void>;
}

/**
 * Starts the programs that the client of the session names, and takes their tools.
 * @param servers those of other kinds than stdio are left out: the agent does not say that it supports them
 * @throws Error if a program does not start or breaks the protocol; then none is left running
 */
export async function startOfferedTools(servers: readonly McpServer[]): Promise<ConnectedTools> {
  const clients: MCPClient[] = [];
  const close = async (): Promise<void> => void (await Promise.all(clients.map((client) => client.close())));
  const tools: ToolSet = {};
  try {
    for (const server of servers) {
      if (!("command" in server)) continue;
      const env = Object.fromEntries(server.env.map(({ name, value }) => [name, value]));
      const transport = new StdioTransport({ command: server.command, args: [...server.args], env });
      const client = await createMCPClient({ transport });
      clients.push(client);
      for (const [name, offered] of Object.entries(await client.tools())) {
        tools[name] = tool({
          description: offered.description ?? name,
          inputSchema: offered.inputSchema,
          execute: async (input: unknown, options): Promise<ToolOutcome> =>
            outcomeOf((await offered.execute(input, options)) as CallToolResult),
          toModelOutput: ({ output }) => asText(output),
        });
      }
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { tools, close };
}

/** @throws Error with what the tool says, if it refused: the model gets the message */
function outcomeOf(result: CallToolResult): ToolOutcome {
  const content = Array.isArray(result.content) ? result.content : [];
  const text = content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
  if (result.isError === true) throw new Error(text);
  return { text };
}
