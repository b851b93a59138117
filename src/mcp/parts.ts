import type { CallToolResult, McpServer, ScopeChallengeHandler } from "@modelcontextprotocol/server";
import type { Client } from "../client.ts";
import type { Scope } from "../domain/people/key.ts";

/** The caller of a tool, as far as tools need to know. */
export interface Caller {
  readonly scopes: readonly Scope[];
  /** Whether the caller is a program that can ask its person for further scopes. */
  readonly mayAskForMore: boolean;
  /** Address of the metadata that says where it asks. */
  readonly metadataUrl: string;
}

/** Dependencies of tools, resources and prompts. */
export interface McpParts {
  readonly server: McpServer;
  /** The API, as the caller. */
  readonly client: Client;
  /** Answers a call as `work` does, or with the sentence of the API's refusal. */
  answer(work: () => Promise<CallToolResult>): Promise<CallToolResult>;
  /** Asks a caller for a scope that it lacks, if it is a program that can ask its person; all others get the API's own refusal. */
  scopeChallenge(scope: Scope): { readonly scopeChallenge?: ScopeChallengeHandler };
}
