import type { Answer, ApiRequest } from "./api-request.ts";

/** A refusal in Bitbucket Cloud's shape; of fields, the message names the first one. */
export function refusedByBitbucket(status: number, message: string, fields?: Record<string, string[]>): Answer {
  return { status, body: { type: "error", error: { message, ...(fields !== undefined && { fields }) } } };
}

/** A page of a list, with the address of the next one. */
export function bitbucketPage<Item>(
  { place, query, path }: ApiRequest,
  items: readonly Item[],
  most: number,
  shapeOf: (item: Item) => unknown,
): Answer {
  const size = Number(query.get("pagelen") ?? 10);
  if (size > most) return refusedByBitbucket(400, "Invalid pagelen");
  const page = Number(query.get("page") ?? 1);
  const next = new URLSearchParams(query);
  next.set("page", String(page + 1));
  const at = `${place.webUrl}/2.0/repositories/${place.owner}/${place.name}${path}`;
  const values = items.slice((page - 1) * size, page * size).map(shapeOf);
  const isLast = page * size >= items.length;
  const body = { pagelen: size, page, size: items.length, values };
  return { status: 200, body: isLast ? body : { ...body, next: `${at}?${next.toString()}` } };
}
