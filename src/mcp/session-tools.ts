import { z } from "zod";
import { sessionStatuses } from "../domain/sessions/status.ts";
import { factsAnswer } from "./answer.ts";
import { briefSession, briefSessionSchema } from "./brief-session.ts";
import type { McpParts } from "./parts.ts";

/** The id of a session in a tool's input. */
export const sessionId = z.uuid().describe("The session's id.");
/** The key of a request that may be sent twice. */
export const idempotencyKey = z
  .string()
  .regex(/^[\u0021-\u007e]{1,255}$/u, "must be 1 to 255 letters, digits and signs of ASCII, without spaces")
  .optional()
  .describe(
    "A text of yours, without spaces. If an answer is lost, call again with the same one: it is done only once.",
  );

/**
 * Adds the tools that start, show, list, steer, cancel and retry sessions, and those that list repositories and agents.
 */
export function addSessionTools(parts: McpParts): void {
  addReading(parts);
  addStart(parts);
  addChanges(parts);
  addPlaces(parts);
}

function addStart({ server, client, answer, scopeChallenge }: McpParts): void {
  server.registerTool(
    "start_session",
    {
      title: "Start a session",
      description:
        "Hands work to a coding agent in the background: it works on its own branch of the repositories, and opens a pull request. Answers at once.",
      inputSchema: z.strictObject({
        prompt: z
          .string()
          .min(1)
          .max(100_000)
          .describe("What to do, with all that the agent needs to know: it sees nothing of this conversation."),
        repositories: z
          .array(z.string())
          .max(20)
          .optional()
          .describe("URLs of the repositories to work on; none: an empty folder, and no pull request."),
        targetBranch: z.string().optional().describe("Branch for the pull request; default the repository's."),
        branchName: z
          .string()
          .optional()
          .describe("Branch to work on; one that exists is continued. Default a new one."),
        agent: z.string().optional().describe("<provider>:<model>, as list_agents shows them; default the server's."),
        idempotencyKey,
      }),
      outputSchema: briefSessionSchema,
      annotations: { destructiveHint: false, openWorldHint: true },
      ...scopeChallenge("write"),
    },
    ({ idempotencyKey: key, ...body }) =>
      answer(async () => {
        const { id } = await client.session.create(body, { idempotencyKey: key });
        return factsAnswer(briefSession(await client.session.get(id), { withSummary: true }));
      }),
  );
}

function addReading({ server, client, answer, scopeChallenge }: McpParts): void {
  server.registerTool(
    "get_session",
    {
      title: "Show a session",
      description: "A session's state: status, pull requests, what went wrong, what its agent said last, what it cost.",
      inputSchema: z.strictObject({ sessionId }),
      outputSchema: briefSessionSchema,
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    ({ sessionId: id }) =>
      answer(async () => factsAnswer(briefSession(await client.session.get(id), { withSummary: true }))),
  );
  server.registerTool(
    "list_sessions",
    {
      title: "List or search sessions",
      description: "Sessions, the newest first, or those in which words are found.",
      inputSchema: z.strictObject({
        search: z.string().min(1).max(500).optional().describe("Words that the session must have."),
        status: z.enum(sessionStatuses).optional(),
        mine: z.boolean().optional().describe("Those that you asked for."),
        automationId: z.uuid().optional().describe("Those that this automation started."),
        limit: z.int().min(1).max(50).default(20),
        cursor: z.string().max(200).optional().describe("nextCursor of the page before."),
      }),
      outputSchema: z.object({ sessions: z.array(briefSessionSchema), nextCursor: z.string().nullable() }),
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    ({ search, mine, ...page }) =>
      answer(async () => {
        const query = { ...page, ...(mine === true && { requestedBy: "me" }) };
        const found = await (search === undefined ? client.session.list(query) : client.session.search(search, query));
        const sessions = found.sessions.map((session) => briefSession(session, { withSummary: false }));
        return factsAnswer({ sessions, nextCursor: found.nextCursor });
      }),
  );
}

function addChanges({ server, client, answer, scopeChallenge }: McpParts): void {
  server.registerTool(
    "send_message",
    {
      title: "Steer a session",
      description:
        "Tells a session's agent what to do next: while it works, it does so after its turn; if it has ended, it begins again.",
      inputSchema: z.strictObject({ sessionId, message: z.string().min(1).max(100_000), idempotencyKey }),
      outputSchema: briefSessionSchema,
      annotations: { destructiveHint: false, openWorldHint: true },
      ...scopeChallenge("write"),
    },
    ({ sessionId: id, message, idempotencyKey: key }) =>
      answer(async () => {
        const session = await client.session.message(id, { message }, { idempotencyKey: key });
        return factsAnswer(briefSession(session, { withSummary: true }));
      }),
  );
  const verbs = {
    cancel_session: {
      title: "Cancel a session",
      description: "Stops a session. Its work so far is kept.",
      act: client.session.cancel,
      annotations: { destructiveHint: true, idempotentHint: true },
    },
    retry_session: {
      title: "Retry a session",
      description: "Queues a session again that failed or was cancelled.",
      act: client.session.queue,
      annotations: { destructiveHint: false },
    },
  } as const;
  for (const [name, { act, ...described }] of Object.entries(verbs)) {
    server.registerTool(
      name,
      {
        ...described,
        inputSchema: z.strictObject({ sessionId }),
        outputSchema: briefSessionSchema,
        ...scopeChallenge("write"),
      },
      ({ sessionId: id }) => answer(async () => factsAnswer(briefSession(await act(id), { withSummary: true }))),
    );
  }
}

function addPlaces({ server, client, answer, scopeChallenge }: McpParts): void {
  server.registerTool(
    "list_repositories",
    {
      title: "List repositories",
      description: "Repositories that sessions have worked on. start_session takes others by their URL, too.",
      inputSchema: z.strictObject({
        limit: z.int().min(1).max(100).default(50),
        cursor: z.string().max(200).optional().describe("nextCursor of the page before."),
      }),
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    (page) =>
      answer(async () => {
        const { codeRepositories, nextCursor } = await client.repository.list(page);
        const repositories = codeRepositories.map(({ id, name, url, branch }) => ({ id, name, url, branch }));
        return factsAnswer({ repositories, nextCursor });
      }),
  );
  server.registerTool(
    "list_agents",
    {
      title: "List agents",
      description: "The coding agents that sessions can be given to, and which is the default.",
      inputSchema: z.strictObject({}),
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    () =>
      answer(async () => {
        const { agents } = await client.agent.list();
        return factsAnswer({
          agents: agents.map(({ id, name, available, problem, defaultModel, isDefault }) => ({
            agent: defaultModel === null ? id : `${id}:${defaultModel}`,
            name,
            available,
            problem,
            isDefault,
          })),
        });
      }),
  );
}
