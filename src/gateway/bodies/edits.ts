import type { InsertionPoint, CheckedBody } from "./facts.ts";
import type { ModelOperation } from "./operations.ts";

/** A range of a body's bytes, and its replacement. */
export interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/**
 * Changes to make in a body before it is forwarded, leaving all other bytes as they were checked: the provider stores
 * nothing, streams report their usage, and an answer is no longer than the budget covers.
 * @param outputLimit maximum tokens of one answer; null: unchanged
 * @returns edits in the order of their positions
 */
export function editsFor(operation: ModelOperation, body: CheckedBody, outputLimit: number | null): Edit[] {
  const ofTop: string[] = [];
  const edits: Edit[] = [];
  if (operation.storesByDefault === true) {
    if (body.store === null) ofTop.push('"store":false');
    else if (body.store.value === null) edits.push({ ...body.store, text: "false" });
  }
  if (operation.hidesUsage === true && body.stream) {
    if (body.streamOptions === null) ofTop.push('"stream_options":{"include_usage":true}');
    else edits.push(...inside(body.streamOptions, body.includeUsage, '"include_usage":', "true"));
  }
  const present = body.limits.find(({ name }) => name === operation.limit);
  if (outputLimit !== null && operation.limit !== null && (present?.value ?? null) === null) {
    const field = `"${operation.limit}":`;
    // Another field of the body may set a lower limit.
    const limit = Math.min(outputLimit, ...body.limits.flatMap(({ value }) => value ?? []));
    if (present !== undefined) edits.push({ ...present, text: String(limit) });
    else if (operation.limit !== "maxOutputTokens") ofTop.push(`${field}${limit}`);
    else if (body.outputLimit === null) ofTop.push(`"generationConfig":{${field}${limit}}`);
    else edits.push(...inside(body.outputLimit, null, field, String(limit)));
  }
  if (ofTop.length > 0) edits.push(put(body.top, ofTop.join(",")));
  return edits.map(({ from, to, text }) => ({ from, to, text })).toSorted((one, other) => one.from - other.from);
}

/** Sets a field of an object in the body; the object may be `null`. */
function inside(
  holder: NonNullable<CheckedBody["streamOptions"]>,
  present: { readonly value: boolean | null; readonly from: number; readonly to: number } | null,
  field: string,
  value: string,
): Edit[] {
  if (holder.place === null) return [{ ...holder, text: `{${field}${value}}` }];
  if (present === null) return [put(holder.place, `${field}${value}`)];
  return present.value === true ? [] : [{ ...present, text: value }];
}

function put({ at, isEmpty }: InsertionPoint, fields: string): Edit {
  return { from: at, to: at, text: isEmpty ? fields : `${fields},` };
}

/** The edited body; copies only what changes. */
export function applyEdits(body: readonly Buffer[], edits: readonly Edit[]): Buffer[] {
  const parts: Buffer[] = [];
  let rest = [...edits];
  let before = 0;
  let skipTo = 0;
  for (const chunk of body) {
    let at = Math.min(chunk.length, Math.max(0, skipTo - before));
    for (let next = rest[0]; next !== undefined && next.from < before + chunk.length; [next] = rest) {
      parts.push(chunk.subarray(at, next.from - before), Buffer.from(next.text));
      skipTo = next.to;
      at = Math.min(chunk.length, next.to - before);
      rest = rest.slice(1);
    }
    parts.push(chunk.subarray(at));
    before += chunk.length;
  }
  return parts;
}
