import type { ForgeAnswer } from "../http/http.ts";
import { refusedBy } from "../http/refusal.ts";

/** Asks GitHub's GraphQL API as it is asked about one repository. */
export type GraphQLCall = (
  query: string,
  variables: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
) => Promise<ForgeAnswer>;

/** The caller and the server, for error messages. */
export interface GraphQLApi {
  readonly host: string;
  readonly ask: GraphQLCall;
}

/**
 * The address of the GraphQL API that belongs to one of REST
 * (https://docs.github.com/enterprise-server/graphql/guides/forming-calls-with-graphql#the-graphql-endpoint).
 */
export function graphqlUrlOf(apiUrl: string): string {
  return apiUrl.endsWith("/api/v3") ? apiUrl.replace(/v3$/u, "graphql") : `${apiUrl}/graphql`;
}

/**
 * The data of a GraphQL answer. With 200 it may still have errors (https://spec.graphql.org/October2021/#sec-Errors).
 * @param what was asked for, such as `reaction`
 * @throws SessionError if it was refused
 */
export function dataOf(host: string, answer: ForgeAnswer, what: string): unknown {
  const { data, errors } = (answer.body ?? {}) as { readonly data?: unknown; readonly errors?: unknown };
  const [first] = (Array.isArray(errors) ? errors : []) as readonly { readonly type?: unknown }[];
  if (answer.status === 200 && first === undefined && typeof data === "object" && data !== null) return data;
  const statuses: Readonly<Record<string, number>> = { FORBIDDEN: 403, NOT_FOUND: 404 };
  const status = answer.status === 200 ? (statuses[String(first?.type)] ?? 422) : answer.status;
  throw refusedBy(host, { status, body: answer.body }, what);
}
