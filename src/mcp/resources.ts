import { ResourceNotFoundError, ResourceTemplate, type ReadResourceResult } from "@modelcontextprotocol/server";
import { ClientError } from "../client.ts";
import { isUuid } from "../domain/fields/uuid.ts";
import { bounded, clean } from "./answer.ts";
import { briefSession } from "./brief-session.ts";
import type { McpParts } from "./parts.ts";

/** Adds sessions and their diffs as resources, which a person can put into a conversation. */
export function addResources({ server, client, scopeChallenge }: McpParts): void {
  server.registerResource(
    "session",
    new ResourceTemplate("offstage://session/{id}", {
      list: async () => {
        const { sessions } = await client.session.list({ limit: 20 });
        return {
          resources: sessions.map(({ id, title, status }) =>
            clean({ uri: `offstage://session/${id}`, name: title, description: status, mimeType: "application/json" }),
          ),
        };
      },
    }),
    {
      title: "A session",
      description: "Its state, as get_session tells it.",
      mimeType: "application/json",
      ...scopeChallenge("read"),
    },
    (uri, { id }) =>
      read(uri, id, async (sessionId) => {
        const session = briefSession(await client.session.get(sessionId), { withSummary: true });
        return { mimeType: "application/json", text: JSON.stringify(clean(session), null, 2) };
      }),
  );
  server.registerResource(
    "diff",
    new ResourceTemplate("offstage://session/{id}/diff", { list: undefined }),
    {
      title: "What a session changed",
      description: "Its unified diff.",
      mimeType: "text/x-diff",
      ...scopeChallenge("read"),
    },
    (uri, { id }) =>
      read(uri, id, async (sessionId) => {
        const { repositories } = await client.session.diff(sessionId);
        return { mimeType: "text/x-diff", text: bounded(repositories.map(({ patch }) => patch).join("")) };
      }),
  );
}

async function read(
  uri: URL,
  id: string | string[] | undefined,
  work: (sessionId: string) => Promise<{ readonly mimeType: string; readonly text: string }>,
): Promise<ReadResourceResult> {
  if (typeof id !== "string" || !isUuid(id)) throw new ResourceNotFoundError(uri.href);
  try {
    return { contents: [{ uri: uri.href, ...(await work(id)) }] };
  } catch (error) {
    if (error instanceof ClientError && error.status === 404) throw new ResourceNotFoundError(uri.href);
    throw error;
  }
}
