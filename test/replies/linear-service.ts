import { startService, type ServiceCall, type ServiceServer } from "./service-server.ts";

/** A comment as it was made. */
interface MadeComment {
  readonly id: string;
  readonly issueId: string;
  readonly body: string;
}

/** A Linear with one issue. */
export interface LinearService extends ServiceServer {
  readonly apiUrl: string;
  /** A person's key. */
  readonly token: string;
  /** Of an OAuth application. */
  readonly oauthToken: string;
  readonly target: { readonly service: "linear"; readonly issueId: string };
  readonly comments: MadeComment[];
}

const token = "lin_api_right";
const oauthToken = "lin_oauth_right";
const target = { service: "linear", issueId: "2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9" } as const;

/** Starts a Linear on this machine. As https://linear.app/developers/graphql has it, errors stand in `errors`, each with its type. */
export async function startLinear(): Promise<LinearService> {
  const comments: MadeComment[] = [];
  const server = await startService((call) => answerOf(call, comments));
  return Object.assign(server, { apiUrl: `${server.url}/graphql`, token, oauthToken, target, comments });
}

/** An answer with an error. @param type as `extensions.type` has it */
export function linearError(message: string, type: string, status = 200): { status: number; body: unknown } {
  return { status, body: { data: null, errors: [{ message, extensions: { type, userPresentableMessage: message } }] } };
}

function answerOf({ headers, body }: ServiceCall, comments: MadeComment[]): { status?: number; body: unknown } {
  if (![token, `Bearer ${oauthToken}`].includes(headers.authorization ?? "")) {
    return linearError("You are trying to use a wrong key", "authentication error", 400);
  }
  const { query, variables } = body as { query: string; variables: { id?: string; input?: MadeComment } };
  const known = comments.find(({ id }) => id === (variables.input?.id ?? variables.id));
  if (query.includes("comment(id: $id)")) {
    if (known === undefined) return linearError("Entity not found: Comment", "invalid input");
    return { body: { data: { comment: shown(known) } } };
  }
  const { input } = variables;
  if (!query.includes("commentCreate(input: $input)") || input === undefined) {
    return linearError("Cannot query field", "graphql error", 400);
  }
  if (input.issueId !== target.issueId) return linearError("Entity not found: Issue", "invalid input");
  if (known !== undefined) return linearError("conflict on insert of Comment", "invalid input");
  comments.push(input);
  return { body: { data: { commentCreate: { success: true, comment: shown(input) } } } };
}

function shown({ id, issueId }: MadeComment): unknown {
  return { id, url: `https://linear.app/acme/issue/ENG-42#comment-${id.slice(0, 8)}`, issue: { id: issueId } };
}
