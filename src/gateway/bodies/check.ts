import { createJsonScanner, MalformedJsonError, type Scalar, type ScanListener } from "../json-scanner.ts";
import { fits, refuseUnlessAllowed, RequestRefusedError } from "../refusal.ts";
import type { Operation } from "./operations.ts";
import { why, type ScalarRule, type Shape } from "./shape.ts";

/** A value of the body that is needed, and where it stands. Null: the body says `null`. */
export interface Said<Value> {
  readonly value: Value | null;
  readonly from: number;
  readonly to: number;
}

/** An object into which a field can be put. */
export interface Place {
  /** Bytes of the body up to its inside. */
  readonly at: number;
  readonly isEmpty: boolean;
}

/** All that is known of a body after it was read: it is kept nowhere else than as the bytes that are forwarded. */
export interface Understood {
  readonly model: string | null;
  readonly maxOutput: Said<number> | null;
  /** The name by which the body limits its answer. */
  readonly maxOutputName: string | null;
  /** Answers that are made at once. */
  readonly choices: number;
  readonly stream: boolean;
  readonly store: Said<boolean> | null;
  readonly includeUsage: Said<boolean> | null;
  readonly top: Place;
  /** `stream_options`, if the body has it. */
  readonly streamOptions: (Said<never> & { readonly place: Place | null }) | null;
  /** `generationConfig`, likewise. */
  readonly outputLimit: (Said<never> & { readonly place: Place | null }) | null;
  /** Asks for something to be kept in a cache for an hour, which has a price of its own. */
  readonly cachesForHour: boolean;
  /** Tokens that it can be at most. */
  readonly inputTokens: number;
  /** How far its conversation is, and whether tools are offered. */
  readonly turns: number;
  readonly hasTools: boolean;
}

export interface BodyCheck {
  /** @throws RequestRefusedError */
  push(chunk: Uint8Array): void;
  /** @throws RequestRefusedError */
  end(): Understood;
}

/** More than a request of the longest conversations has: each costs a provider more than its bytes. */
const mostValues = 2_000_000;
/** Of one object, where names are of interest: known ones are some dozens. */
const mostNames = 500;
const longestModel = 200;
/** An image is thousands of tokens, whatever its bytes; sound some for each second, a page of a document like an image. */
const tokensOfMedia = 5_000;
const bytesPerToken = { document: 16, other: 500 };
/** How images, sound and documents begin in base64; what begins otherwise is counted as the text that it may be. */
const mediaStart =
  /^(?:data:(?:image|audio|video|application\/pdf)|iVBORw0K|\/9j\/|R0lGOD|UklGR|JVBERi|SUQz|\/\/[uv]|T2dnUw|AAAA)/u;

interface Frame {
  readonly shape: Shape;
  /** Of an object: the names so far. */
  readonly names: Set<string> | null;
  /** The name of the value that comes next. */
  name: string;
  next: Shape;
  elements: number;
  /** What looks like an image, sound or document in it: weight of its bytes, and tokens in their place. */
  mediaWeight: number;
  mediaTokens: number;
  /** It is text, whatever it looks like. */
  isText: boolean;
  readonly at: number;
}

/**
 * Checks a body against what its operation may hold, as it comes. What it does not name is refused, whatever a provider might
 * make of it, and so is what two programs could read in two ways: a name twice, in other capitals, what is no JSON.
 * @param options.pathModel the model that the path names
 * @param options.permits what the operator allowed by name
 */
export function createBodyCheck(options: {
  readonly operation: Operation;
  readonly pathModel: string | null;
  readonly permits: readonly string[];
}): BodyCheck {
  const { operation, pathModel, permits } = options;
  const frames: Frame[] = [];
  const found = facts();
  const mayTellOfTools = permits.some((permit) => permit.startsWith("tool:"));
  let values = 0;

  function shapeOfNext(): Shape {
    values += 1;
    if (values > mostValues) throw new RequestRefusedError(413, `the body has more than ${mostValues} values`);
    const frame = frames.at(-1);
    if (frame === undefined) return operation.shape;
    frame.elements += 1;
    if (frame.names !== null) return frame.next;
    if (frame.shape.counts === "turns") found.turns += 1;
    if (frame.shape.counts === "tools") found.hasTools = true;
    return frame.shape.each?.() ?? {};
  }

  /** What the value is called, as its reader would look for it. */
  function called(): string {
    return (
      frames
        .map(({ names, name }) => (names === null ? "[]" : `.${name}`))
        .join("")
        .replace(/^\./u, "") || "the body"
    );
  }

  function unknown(name: string): Shape {
    if (frames.at(-1)?.shape.tellsOfTools === true && mayTellOfTools) return { isData: true };
    return { scalar: { kind: "refused", permit: `field:${name}`, why: why.unknown } };
  }

  const listener: ScanListener = {
    key(written) {
      const frame = frames.at(-1);
      if (frame?.names == null) return;
      const name =
        written === null
          ? "a name of more than 600 bytes"
          : operation.hasTwoSpellings === true
            ? camel(written)
            : written;
      frame.name = name;
      if (frame.names.has(name)) throw new RequestRefusedError(400, `the body names ${called()} twice`);
      frame.names.add(name);
      if (frame.names.size > mostNames)
        throw new RequestRefusedError(413, `an object of the body has more than ${mostNames} fields`);
      const known = frame.shape.fields;
      frame.next =
        known !== undefined && Object.hasOwn(known, name) ? (known[name] ?? {}) : unknown(name.slice(0, 100));
    },
    open(kind, at) {
      const shape = shapeOfNext();
      if (frames.length === 0 && kind === "list") throw new RequestRefusedError(400, "the body must be a JSON object");
      if (shape.isData === true) return false;
      if (shape.scalar?.kind === "refused") {
        refuse(permits, shape.scalar, called);
        return false;
      }
      if ((kind === "list" ? shape.each : shape.fields) === undefined)
        throw new RequestRefusedError(400, `${called()} of the body must be no ${kind}`);
      const names = kind === "object" ? new Set<string>() : null;
      frames.push({
        shape,
        names,
        name: "",
        next: {},
        elements: 0,
        mediaWeight: 0,
        mediaTokens: 0,
        isText: false,
        at: at + 1,
      });
      return true;
    },
    close() {
      const frame = frames.pop();
      if (frame?.names == null) return;
      if (!frame.isText) {
        found.mediaWeight += frame.mediaWeight;
        found.mediaTokens += frame.mediaTokens;
      }
      const place = { at: frame.at, isEmpty: frame.elements === 0 };
      if (frames.length === 0) found.top = place;
      else if (frame.shape.place !== undefined) found[frame.shape.place] = { value: null, from: 0, to: 0, place };
    },
    scalar(value) {
      const shape = shapeOfNext();
      if (frames.length === 0) throw new RequestRefusedError(400, "the body must be a JSON object");
      if (shape.isData === true) return;
      const frame = frames.at(-1);
      if (value.kind === "literal" && value.text === "null") {
        if (shape.place !== undefined)
          found[shape.place] = { value: null, from: value.from, to: value.to, place: null };
        const rule = shape.scalar;
        if (rule?.kind === "flag") found[rule.fact] = { value: null, from: value.from, to: value.to };
        else if (rule?.kind === "count" && rule.fact === "maxOutput")
          sayMaxOutput(found, frame?.name ?? "", null, value);
        return;
      }
      if (shape.scalar === undefined)
        throw new RequestRefusedError(400, `${called()} of the body must be no ${value.kind}`);
      take(shape.scalar, value, frame);
    },
  };

  function take(rule: ScalarRule, value: Scalar, frame: Frame | undefined): void {
    const { from, to } = value;
    switch (rule.kind) {
      case "any":
        return;
      case "model":
        found.model = modelName(value, called);
        return;
      case "sameModel":
        if (modelName(value, called).replace(/^models\//u, "") !== pathModel)
          throw new RequestRefusedError(400, `${called()} of the body must be the model that the path names`);
        return;
      case "cacheLifetime":
        if (value.text !== "5m") found.cachesForHour = true;
        return;
      case "count": {
        const number = wholeNumber(value, called);
        if (rule.fact === "choices") found.choices = Math.max(found.choices, number);
        else sayMaxOutput(found, frame?.name ?? "", number, value);
        return;
      }
      case "flag":
        found[rule.fact] = { value: truth(value, called), from, to };
        if (rule.fact === "store" && found.store?.value === true)
          refuseUnlessAllowed(permits, "field:store", `${called()} asks for what ${why.kept}`);
        return;
      case "oneOf":
        if (frame !== undefined && rule.permit === "source" && value.text !== "base64") frame.isText = true;
        oneOf(permits, rule, value, called);
        return;
      case "inline":
      case "dataUrl":
      case "bytes":
        requireInline(rule.kind, value, called);
        if (frame !== undefined) measureMedia(frame, value);
        return;
      case "refused":
        if (value.kind !== "literal" || value.text !== "false") refuse(permits, rule, called);
        return;
    }
  }

  const scanner = createJsonScanner(listener);
  return {
    push: (chunk) => understood(() => scanner.push(chunk)),
    end() {
      understood(() => scanner.end());
      return conclude(found, scanner.weight());
    },
  };
}

/** @throws RequestRefusedError instead of what says that something is no JSON */
function understood(read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof MalformedJsonError)) throw error;
    throw new RequestRefusedError(400, `the body is not JSON that everybody reads in the same way: ${error.message}`);
  }
}

interface Facts {
  model: string | null;
  maxOutput: Said<number> | null;
  maxOutputName: string | null;
  choices: number;
  stream: Said<boolean> | null;
  store: Said<boolean> | null;
  includeUsage: Said<boolean> | null;
  top: Place;
  streamOptions: Understood["streamOptions"];
  outputLimit: Understood["outputLimit"];
  cachesForHour: boolean;
  turns: number;
  hasTools: boolean;
  mediaWeight: number;
  mediaTokens: number;
}

function facts(): Facts {
  return {
    model: null,
    maxOutput: null,
    maxOutputName: null,
    choices: 1,
    stream: null,
    store: null,
    includeUsage: null,
    top: { at: 0, isEmpty: true },
    streamOptions: null,
    outputLimit: null,
    cachesForHour: false,
    turns: 0,
    hasTools: false,
    mediaWeight: 0,
    mediaTokens: 0,
  };
}

function conclude({ stream, mediaWeight, mediaTokens, ...found }: Facts, weight: number): Understood {
  const inputTokens = Math.ceil((weight - mediaWeight) / 2 + mediaTokens);
  return { ...found, stream: stream?.value === true, inputTokens };
}

/** Of two names the provider may take either: the larger counts. */
function sayMaxOutput(
  found: Facts,
  name: string,
  value: number | null,
  { from, to }: { readonly from: number; readonly to: number },
): void {
  if (found.maxOutput !== null && (found.maxOutput.value ?? -1) > (value ?? -1)) return;
  found.maxOutput = { value, from, to };
  found.maxOutputName = name;
}

function measureMedia(frame: Frame, { start, from, to, weight }: Scalar): void {
  if (!mediaStart.test(start)) return;
  const isDocument = /^(?:JVBERi|data:application)/u.test(start);
  frame.mediaWeight += weight;
  frame.mediaTokens += tokensOfMedia + (to - from) / (isDocument ? bytesPerToken.document : bytesPerToken.other);
}

function modelName({ kind, text }: Scalar, called: () => string): string {
  if (kind === "string" && text !== null && text.length <= longestModel && /^[\x21-\x7e]+$/u.test(text)) return text;
  throw new RequestRefusedError(
    400,
    `${called()} of the body must be a model's name: at most ${longestModel} characters, in ASCII`,
  );
}

function wholeNumber({ kind, text }: Scalar, called: () => string): number {
  // Other spellings of a number are read as others by some programs.
  if (kind === "number" && text !== null && /^\d{1,9}$/u.test(text)) return Number(text);
  throw new RequestRefusedError(400, `${called()} of the body must be a whole number of at most nine digits`);
}

function truth({ kind, text }: Scalar, called: () => string): boolean {
  if (kind === "literal") return text === "true";
  throw new RequestRefusedError(400, `${called()} of the body must be true or false`);
}

function oneOf(
  permits: readonly string[],
  rule: Extract<ScalarRule, { kind: "oneOf" }>,
  { kind, text }: Scalar,
  called: () => string,
): void {
  if (kind !== "string" || text === null || !/^[\w.:/-]{1,100}$/u.test(text))
    throw new RequestRefusedError(400, `${called()} of the body must be a name of at most 100 letters and digits`);
  if (rule.values.some((value) => fits(value, text))) return;
  refuseUnlessAllowed(permits, `${rule.permit}:${text}`, `${called()} is ${text}, which ${rule.why}`);
}

/** By the bytes as they are written: what is escaped could be read as an address. */
const inlineStart = {
  bytes: /^/u,
  inline: /^(?:data:|(?:[A-Za-z0-9+/=_-]|\\\/)*$)/u,
  dataUrl: /^data:/u,
};

function requireInline(kind: keyof typeof inlineStart, { kind: type, start }: Scalar, called: () => string): void {
  if (type === "string" && inlineStart[kind].test(start.slice(0, 100))) return;
  const must = `${called()} must hold its content as ${kind === "dataUrl" ? "a data URL" : "base64 or a data URL"}`;
  throw new RequestRefusedError(403, `${must}: anything else ${why.fetched}`);
}

function refuse(
  permits: readonly string[],
  rule: Extract<ScalarRule, { kind: "refused" }>,
  called: () => string,
): void {
  refuseUnlessAllowed(permits, rule.permit, `${called()} ${rule.why}`);
}

/** `snake_case` as Protocol Buffers write it: a letter after an underscore is a capital. */
function camel(name: string): string {
  return name.replaceAll(/(?<=.)_([a-z])/gu, (_, letter: string) => letter.toUpperCase());
}
