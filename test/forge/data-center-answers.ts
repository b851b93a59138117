import type { Answer, ApiRequest } from "./api-request.ts";

/** A refusal in Data Center's shape. */
export function refusedByDataCenter(
  status: number,
  message: string,
  exceptionName: string | null,
  more: object = {},
): Answer {
  return { status, body: { errors: [{ context: null, message, exceptionName, ...more }] } };
}

/** A page of a list: it says whether it is the last, and where the next one begins. */
export function dataCenterPage<Item>(
  { query }: ApiRequest,
  items: readonly Item[],
  shapeOf: (item: Item) => unknown,
): Answer {
  const limit = Number(query.get("limit") ?? 25);
  const start = Number(query.get("start") ?? 0);
  const values = items.slice(start, start + limit).map(shapeOf);
  const isLastPage = start + limit >= items.length;
  const next = isLastPage ? null : start + limit;
  return { status: 200, body: { size: values.length, limit, start, isLastPage, nextPageStart: next, values } };
}
