import { appendFile, mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { modelProviderIds } from "../../domain/agents/model.ts";

const exchangeSchema = z.object({
  provider: z.enum(modelProviderIds),
  method: z.string(),
  path: z.string(),
  model: z.string().nullable(),
  /** Empty if it is too large to record. */
  body: z.string(),
  /** Length of the conversation, and whether tools were offered; missing in older recordings. */
  turns: z.number().int().optional(),
  hasTools: z.boolean().optional(),
  status: z.number().int(),
  contentType: z.string(),
  /** The answer's chunks as they arrived, in base64. */
  chunks: z.array(z.string()),
});

/** A request to a model with its answer: one line of a recording. */
export type Exchange = z.infer<typeof exchangeSchema>;

/** Writes a recording. */
export interface Recorder {
  begin(
    request: Pick<Exchange, "provider" | "method" | "path" | "model" | "turns" | "hasTools"> & {
      readonly body: readonly Buffer[];
    },
  ): {
    head(status: number, contentType: string): void;
    chunk(chunk: Buffer): void;
    /** Writes the exchange; answers that broke off or are too long are not recorded. */
    end(): void;
  };
  /** Settles when all ended exchanges are written. @throws errors of writing */
  settled(): Promise<void>;
}

/** Maximum bytes of a recorded body, which is masked as one text. */
const longestBody = 1024 * 1024;
/** Maximum bytes of a recorded answer, which is in memory until it ends. */
const longestAnswer = 16 * 1024 * 1024;

/**
 * Appends exchanges to a file that only its owner can read, one JSON document on each line, in the order of their ends.
 */
export function createRecorder(file: string, mask: (text: string) => string): Recorder {
  let written: Promise<void> = mkdir(dirname(file), { recursive: true, mode: 0o700 }).then(() => undefined);
  // `settled` reports the error.
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
          // `settled` reports the error.
          written.catch(() => undefined);
        },
      };
    },
    settled: () => written,
  };
}

/** Reads a recording. @throws Error if the file does not exist or is not a recording */
export async function readRecording(file: string): Promise<Exchange[]> {
  const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line !== "");
  return lines.map((line) => exchangeSchema.parse(JSON.parse(line)));
}
