import { appendFile, mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { modelProviderIds } from "../../domain/model.ts";

const exchangeSchema = z.object({
  provider: z.enum(modelProviderIds),
  method: z.string(),
  path: z.string(),
  model: z.string().nullable(),
  /** Empty if it is too large to be kept. */
  body: z.string(),
  /** How far the conversation was, and whether tools were offered; older recordings do not have it. */
  turns: z.number().int().optional(),
  hasTools: z.boolean().optional(),
  status: z.number().int(),
  contentType: z.string(),
  /** What came back, in the pieces in which it came, as base64. */
  chunks: z.array(z.string()),
});

/** One request of a model and its answer, as a line of a recording holds it. */
export type Exchange = z.infer<typeof exchangeSchema>;

export interface Recorder {
  begin(
    request: Pick<Exchange, "provider" | "method" | "path" | "model" | "turns" | "hasTools"> & {
      readonly body: readonly Buffer[];
    },
  ): {
    head(status: number, contentType: string): void;
    chunk(chunk: Buffer): void;
    /** Writes it; an answer that broke off, or is too long, is not kept. */
    end(): void;
  };
  /** Settles when all that ended is written. @throws what writing threw */
  settled(): Promise<void>;
}

/** Bytes of a body, which is masked as one piece of text beside everything else that runs. */
const longestBody = 1024 * 1024;
/** Bytes of an answer, which waits in memory until it is over. */
const longestAnswer = 16 * 1024 * 1024;

/** Appends exchanges to a file that its owner alone can read, a JSON document on each line, in the order of their ends. */
export function createRecorder(file: string, mask: (text: string) => string): Recorder {
  let written: Promise<void> = mkdir(dirname(file), { recursive: true, mode: 0o700 }).then(() => undefined);
  // Heard by whoever awaits `settled`.
  written.catch(() => undefined);
  return {
    begin(request) {
      let head = { status: 0, contentType: "" };
      const chunks: string[] = [];
      let bytes = 0;
      const size = request.body.reduce((sum, part) => sum + part.length, 0);
      const body = size > longestBody ? "" : Buffer.concat(request.body).toString("utf8");
      return {
        head: (status, contentType) => void (head = { status, contentType }),
        chunk(chunk) {
          bytes += chunk.length;
          if (bytes > longestAnswer) chunks.length = 0;
          else chunks.push(chunk.toString("base64"));
        },
        end() {
          if (bytes > longestAnswer) return;
          const exchange: Exchange = { ...request, body: mask(body), ...head, chunks };
          written = written.then(() => appendFile(file, `${JSON.stringify(exchange)}\n`, { mode: 0o600 }));
          // Heard by whoever awaits `settled`.
          written.catch(() => undefined);
        },
      };
    },
    settled: () => written,
  };
}

/** @throws Error if the file is not there or is no recording */
export async function readRecording(file: string): Promise<Exchange[]> {
  const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line !== "");
  return lines.map((line) => exchangeSchema.parse(JSON.parse(line)));
}
