import { createHash } from "node:crypto";
import { z } from "zod";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { DumpPart } from "./dump.ts";

/**
 * Version of the text format of a dump, before it is compressed. Each part is a line with its kind and JSON. A table's line
 * is followed by its rows in the text format of PostgreSQL's COPY, which end with a line `\.`, as in pg_dump; no row can be
 * that line. The last line has the SHA-256 of all bytes before it.
 *
 *     offstage-backup {"format":1,"offstage":"0.1.0","takenAt":"…","migrations":[{"number":1,"name":"0001_initial.sql"}]}
 *     table {"name":"api_key","columns":["id","organization_id"]}
 *     …
 *     \.
 *     sequence {"name":"…","value":"7","isCalled":true}
 *     end {"tables":19,"rows":1234,"sha256":"…"}
 */
const format = 1;
const closingMark = Buffer.from("\n\\.\n");
const newline = 0x0a;
/** Only a row can be this long. */
const longestLine = 16 * 1024 * 1024;

const migration = z.object({ number: z.number().int(), name: z.string() });
const lines = {
  "offstage-backup": z.object({
    format: z.number().int(),
    offstage: z.string(),
    takenAt: z.iso.datetime(),
    migrations: z.array(migration),
  }),
  table: z.object({ name: z.string(), columns: z.array(z.string()) }),
  sequence: z.object({ name: z.string(), value: z.string().regex(/^-?\d+$/u), isCalled: z.boolean() }),
  end: z.object({ tables: z.number().int(), rows: z.number().int(), sha256: z.string() }),
} as const;
type LineKind = keyof typeof lines;

/** Encodes a dump as bytes, with its checksum. */
export async function* encodeDump(parts: AsyncIterable<DumpPart>): AsyncGenerator<Buffer, void, void> {
  const hash = createHash("sha256");
  let inTable = false;
  for await (const part of parts) {
    const written: Buffer[] = [];
    if (part.kind === "rows") written.push(part.bytes);
    else {
      if (inTable) written.push(closingMark.subarray(1));
      inTable = part.kind === "table";
      written.push(lineOf(part, () => hash.copy().update(Buffer.concat(written)).digest("hex")));
    }
    for (const bytes of written) {
      hash.update(bytes);
      yield bytes;
    }
  }
}

function lineOf(part: Exclude<DumpPart, { kind: "rows" }>, checksum: () => string): Buffer {
  const { kind, ...fields } = part;
  if (kind === "header") return Buffer.from(`offstage-backup ${JSON.stringify({ format, ...fields })}\n`);
  const all = kind === "end" ? { ...fields, sha256: checksum() } : fields;
  return Buffer.from(`${kind} ${JSON.stringify(all)}\n`);
}

/**
 * Decodes the output of `encodeDump`.
 * @throws InvalidInputError if it is not a backup, has a newer format, or is damaged or truncated. Damage is certain
 * to be found only at the end
 */
export async function* decodeDump(source: AsyncIterable<Buffer>): AsyncGenerator<DumpPart, void, void> {
  const hash = createHash("sha256");
  let pending: Buffer = Buffer.alloc(0);
  /**
   * Set while a table's rows are read: how many bytes of `pending` belong to the line before, so that a mark right at
   * the start is found.
   */
  let inRows: { skipped: number } | null = null;
  let isFirst = true;
  let ended = false;
  const take = (length: number): Buffer => {
    const taken = pending.subarray(0, length);
    pending = pending.subarray(length);
    return taken;
  };

  for await (const chunk of source) {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    for (;;) {
      if (ended && pending.length > 0) throw damaged("something follows its end");
      if (inRows !== null) {
        const at = pending.indexOf(closingMark);
        // The mark may begin in the bytes at the end: these are kept back.
        const length = at === -1 ? pending.length - (closingMark.length - 1) : at + 1;
        if (length > inRows.skipped) {
          const bytes = take(length);
          hash.update(bytes);
          const rows = bytes.subarray(inRows.skipped);
          inRows = { skipped: 0 };
          if (rows.length > 0) yield { kind: "rows", bytes: rows };
          if (at === -1) break;
        } else if (at === -1) break;
        else hash.update(take(length));
        hash.update(take(closingMark.length - 1));
        inRows = null;
        continue;
      }
      const end = pending.indexOf(newline);
      if (end === -1) {
        if (pending.length > longestLine) throw damaged("a line has no end");
        break;
      }
      const { kind, fields } = readLine(pending.subarray(0, end).toString());
      if (isFirst !== (kind === "offstage-backup")) throw isFirst ? noBackup() : damaged("it has two headers");
      isFirst = false;
      if (kind === "end") {
        const { sha256, ...totals } = lines.end.parse(fields);
        if (hash.digest("hex") !== sha256) throw damaged("its checksum does not match");
        ended = true;
        take(end + 1);
        yield { kind: "end", ...totals };
        continue;
      }
      // The newline before a table's rows is kept: if there are no rows, the closing mark begins with it.
      hash.update(take(kind === "table" ? end : end + 1));
      if (kind === "table") inRows = { skipped: 1 };
      yield partOf(kind, fields);
    }
  }
  if (isFirst) throw noBackup();
  if (!ended) throw damaged("its end is missing");
}

function readLine(line: string): { kind: LineKind; fields: unknown } {
  const space = line.indexOf(" ");
  const kind = (Object.keys(lines) as LineKind[]).find((known) => known === line.slice(0, space));
  if (kind === undefined) throw noBackup();
  try {
    return { kind, fields: lines[kind].parse(JSON.parse(line.slice(space + 1))) };
  } catch {
    throw damaged(`its ${kind} can't be read`);
  }
}

function partOf(kind: Exclude<LineKind, "end">, fields: unknown): DumpPart {
  if (kind === "table") return { kind, ...lines.table.parse(fields) };
  if (kind === "sequence") return { kind, ...lines.sequence.parse(fields) };
  const { format: written, ...header } = lines["offstage-backup"].parse(fields);
  if (written > format) {
    throw new InvalidInputError(
      `the backup was taken by Offstage ${header.offstage} in a newer format than this one reads: restore it with that version or a newer one`,
    );
  }
  return { kind: "header", ...header };
}

function noBackup(): InvalidInputError {
  return new InvalidInputError("the file is not an Offstage backup");
}

/**
 * The error for a damaged backup.
 * @param how ends the sentence "the backup is damaged: "
 */
export function damaged(how: string): InvalidInputError {
  return new InvalidInputError(`the backup is damaged: ${how}; nothing was restored, take an older one`);
}
