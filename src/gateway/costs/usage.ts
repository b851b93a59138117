import { createJsonScanner, MalformedJsonError, type JsonScanner, type Scalar } from "../bodies/json-scanner.ts";

/**
 * Tokens that one request used, as the provider counts them. Input excludes what was read from a cache; output includes
 * reasoning.
 */
export interface ModelUsage {
  readonly model: string | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** Part of the tokens written to a cache that are kept for an hour. */
  readonly cacheHourTokens?: number;
  /** Whether some of the input may be audio. */
  readonly hasSound?: boolean;
}

/** Usage that an answer reported. */
export interface ReportedUsage extends ModelUsage {
  /** Whether it reported the usage of the whole answer, not only of the input. */
  readonly isWhole: boolean;
}

/** Fields to read, in the objects in which providers report usage. */
interface Fields {
  readonly [name: string]: Fields | true;
}
const leaves = (...names: string[]): Fields => Object.fromEntries(names.map((name) => [name, true]));
const details = leaves("cached_tokens", "reasoning_tokens", "cache_write_tokens");
const holder: Fields = {
  ...leaves("model", "modelVersion"),
  usage: {
    // Anthropic Messages, and OpenAI Responses
    ...leaves("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    cache_creation: leaves("ephemeral_1h_input_tokens"),
    input_tokens_details: details,
    output_tokens_details: details,
    // OpenAI Chat Completions
    ...leaves("prompt_tokens", "completion_tokens"),
    prompt_tokens_details: details,
    completion_tokens_details: details,
  },
  // Read along with the usage, for `models/reported-error.ts`.
  error: leaves("type", "code", "status", "message"),
  usageMetadata: leaves(
    "promptTokenCount",
    "candidatesTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
  ),
};
/** Some events of a stream contain the answer so far. */
const piece: Fields = { ...holder, ...leaves("type", "code"), message: holder, response: holder };
const longestModel = 200;

/** Values by their path, such as `response.usage.input_tokens`. */
export type FoundValues = Map<string, number | string>;

/** Reads the usage in an answer while it passes. */
export interface UsageReader {
  read(chunk: Uint8Array): void;
  /** Null if the answer reported no usage. */
  end(): ReportedUsage | null;
}

/**
 * Creates a reader of an answer: a stream of server-sent events, or one JSON document. It keeps a few numbers, however
 * long the answer is. Each count is the newest, not a sum.
 * @param observe called with what each event has, or the document
 */
export function createUsageReader(observe?: (found: FoundValues) => void): UsageReader {
  let reported: ReportedUsage | null = null;
  let lines: { read(chunk: Uint8Array): void; end(): void } | null = null;
  const take = (found: FoundValues): void => {
    for (const prefix of ["", "message.", "response."]) reported = newest(reported, found, prefix);
    observe?.(found);
  };
  return {
    read(chunk) {
      let start = 0;
      // A document begins with a brace or bracket, whatever its content type is; an event stream with a word or a
      // comment.
      if (lines === null) {
        start = chunk.findIndex((byte) => byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09);
        if (start === -1) return;
        lines = chunk[start] === 0x7b || chunk[start] === 0x5b ? createDocument(take) : createEvents(take);
      }
      lines.read(chunk.subarray(start));
    },
    end() {
      lines?.end();
      return reported;
    },
  };
}

/** Reads one document; ignores invalid ones. */
function createDocument(take: (found: FoundValues) => void): { read(chunk: Uint8Array): void; end(): void } {
  const found: FoundValues = new Map();
  let scanner: JsonScanner | null = createFinder(found, take);
  const attempt = (read: (scanner: JsonScanner) => void): void => {
    try {
      if (scanner !== null) read(scanner);
    } catch (error) {
      if (!(error instanceof MalformedJsonError)) throw error;
      scanner = null;
    }
  };
  return {
    read: (chunk) => attempt((whole) => whole.push(chunk)),
    end: () => attempt((whole) => whole.end()),
  };
}

const dataField = Buffer.from("data:");

/** Reads each line that begins with `data:` as a document (HTML standard, server-sent events). */
function createEvents(take: (found: FoundValues) => void): { read(chunk: Uint8Array): void; end(): void } {
  let column = 0;
  let isData = true;
  let document: ReturnType<typeof createDocument> | null = null;
  function endLine(): void {
    document?.end();
    document = null;
    column = 0;
    isData = true;
  }
  return {
    read(chunk) {
      for (let at = 0; at < chunk.length;) {
        if (chunk[at] === 0x0a || chunk[at] === 0x0d) {
          endLine();
          at += 1;
        } else if (isData && column < dataField.length) {
          isData = chunk[at] === dataField[column];
          column += 1;
          at += 1;
        } else {
          const to = endOfLine(chunk, at);
          if (isData) {
            document ??= createDocument(take);
            document.read(chunk.subarray(at, to));
          }
          at = to;
        }
      }
    },
    end: endLine,
  };
}

function endOfLine(chunk: Uint8Array, from: number): number {
  const feed = chunk.indexOf(0x0a, from);
  const to = feed === -1 ? chunk.length : feed;
  const carriage = chunk.subarray(from, to).indexOf(0x0d);
  return carriage === -1 ? to : from + carriage;
}

/**
 * @param take called for each answer: a document is one, or an array of them, as Gemini sends without server-sent
 * events
 */
function createFinder(found: FoundValues, take: (found: FoundValues) => void): JsonScanner {
  const open: { readonly fields: Fields; readonly path: string; readonly isList: boolean }[] = [];
  let name = "";
  return createJsonScanner({
    key: (key) => void (name = key ?? ""),
    open(kind) {
      const outer = open.at(-1);
      if (outer === undefined || outer.isList) {
        if (outer?.isList === true && kind === "list") return false;
        open.push({ fields: piece, path: "", isList: kind === "list" });
        return true;
      }
      const fields = Object.hasOwn(outer.fields, name) ? outer.fields[name] : undefined;
      if (kind === "list" || fields === undefined || fields === true) return false;
      open.push({ fields, path: `${outer.path}${name}.`, isList: false });
      return true;
    },
    close() {
      const closed = open.pop();
      if (closed?.path !== "" || closed.isList) return;
      take(found);
      found.clear();
    },
    scalar(value) {
      const outer = open.at(-1);
      if (outer === undefined || outer.isList || !Object.hasOwn(outer.fields, name)) return;
      // An error of OpenAI's Responses has a text where Anthropic's events have an object.
      const isText = outer.path === "" && name === "message";
      if (outer.fields[name] !== true && !isText) return;
      const read = valueOf(value);
      if (read !== null) found.set(`${outer.path}${name}`, read);
    },
  });
}

function valueOf({ kind, text }: Scalar): number | string | null {
  if (text === null) return null;
  if (kind === "string") return text.slice(0, longestModel);
  const number = kind === "number" ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) && number >= 0 ? number : null;
}

/** @param prefix path of the object that contains the usage, such as `response.` */
function newest(before: ReportedUsage | null, found: FoundValues, prefix: string): ReportedUsage | null {
  const number = (...names: string[]): number | undefined => {
    return names.map((name) => found.get(`${prefix}usage${name}`)).find((value) => typeof value === "number");
  };
  const name = [found.get(`${prefix}model`), found.get(`${prefix}modelVersion`)].find(
    (value) => typeof value === "string",
  );
  const all = number(".input_tokens", ".prompt_tokens", "Metadata.promptTokenCount");
  const output = number(".output_tokens", ".completion_tokens") ?? geminiOutput(number);
  const hasAny = all !== undefined || output !== undefined;
  if (!hasAny) return before === null || name === undefined ? before : { ...before, model: name };
  const cached = number(
    ".input_tokens_details.cached_tokens",
    ".prompt_tokens_details.cached_tokens",
    "Metadata.cachedContentTokenCount",
  );
  const written = number(".input_tokens_details.cache_write_tokens", ".prompt_tokens_details.cache_write_tokens");
  // Gemini counts tokens brought in by tools separately.
  const toolTokens = number("Metadata.toolUsePromptTokenCount") ?? 0;
  const hour = number(".cache_creation.ephemeral_1h_input_tokens") ?? before?.cacheHourTokens;
  // The event that begins a message counts only the first word of the answer.
  const isBeginning = prefix === "message.";
  return {
    model: name ?? before?.model ?? null,
    // Anthropic's input excludes cached tokens, the others' includes them.
    inputTokens:
      all === undefined ? (before?.inputTokens ?? 0) : Math.max(0, all - (cached ?? 0) - (written ?? 0)) + toolTokens,
    outputTokens: output ?? before?.outputTokens ?? 0,
    cacheReadTokens: number(".cache_read_input_tokens") ?? cached ?? before?.cacheReadTokens ?? 0,
    cacheWriteTokens: number(".cache_creation_input_tokens") ?? written ?? before?.cacheWriteTokens ?? 0,
    reasoningTokens:
      number(
        ".output_tokens_details.reasoning_tokens",
        ".completion_tokens_details.reasoning_tokens",
        "Metadata.thoughtsTokenCount",
      ) ??
      before?.reasoningTokens ??
      0,
    ...(hour !== undefined && { cacheHourTokens: hour }),
    isWhole: (output !== undefined && !isBeginning) || before?.isWhole === true,
  };
}

/** Gemini's output excludes reasoning, the others' includes it. */
function geminiOutput(number: (name: string) => number | undefined): number | undefined {
  const [answer, thoughts] = [number("Metadata.candidatesTokenCount"), number("Metadata.thoughtsTokenCount")];
  return answer === undefined && thoughts === undefined ? undefined : (answer ?? 0) + (thoughts ?? 0);
}
