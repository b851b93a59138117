import { matchesPattern, refuseUnlessAllowed, RequestRefusedError } from "../refusal.ts";
import { conclude, noFacts, type CheckedBody } from "./facts.ts";
import { createJsonScanner, MalformedJsonError, type Scalar, type ScanListener } from "./json-scanner.ts";
import { mediaOf } from "./media.ts";
import type { ModelOperation } from "./operations.ts";
import { modelName, oneOfNames, refuse, requireInline, truth, wholeNumber } from "./scalar-rules.ts";
import { why, type ScalarRule, type Shape } from "./shape.ts";

/** See `Understood` in facts.ts. */
export type { CheckedBody as Understood } from "./facts.ts";

/** Checks one request's body. */
export interface BodyCheck {
  /** Checks the next bytes. @throws RequestRefusedError */
  push(chunk: Uint8Array): void;
  /** Ends the check. @throws RequestRefusedError */
  end(): CheckedBody;
}

/** Maximum values of a body, more than the longest conversations have: each costs a provider more than its bytes. */
const mostValues = 2_000_000;
/** Maximum fields of an object whose names are checked; known ones are some dozens. */
const mostNames = 500;

interface Frame {
  readonly shape: Shape;
  /** Names of the object's fields so far. */
  readonly names: Set<string> | null;
  /** Fields that have a value, if the object's shape needs some. */
  readonly present: Set<string> | null;
  /** Name of the next value. */
  name: string;
  next: Shape;
  elements: number;
  readonly at: number;
  /** The object's `type`, and whether only the operator allows it. */
  type: string;
  isPermittedType: boolean;
  /** First unknown field of an object whose type may allow it. */
  unknown: { readonly name: string; readonly called: string } | null;
  /** `type` that the object must have, because of one of its fields. */
  labelOf: string | null;
  readonly media: Scalar[];
  mediaType: string | null;
  /** Its content is plain text, whatever it looks like. */
  isText: boolean;
}

/**
 * Checks a body against the shape of its operation while it arrives. Refuses everything that the shape does not name,
 * whatever a provider might do with it, and what two programs could parse in two ways: duplicate names, also in other
 * case, and malformed JSON.
 * @param options.pathModel the model that the path names
 * @param options.permits what the operator allowed by name
 */
export function createBodyCheck(options: {
  readonly operation: ModelOperation;
  readonly pathModel: string | null;
  readonly permits: readonly string[];
}): BodyCheck {
  const { operation, pathModel, permits } = options;
  const frames: Frame[] = [];
  const found = noFacts();
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

  /** Path of the value, for the refusal. */
  function called(): string {
    return (
      frames
        .map(({ names, name }) => (names === null ? "[]" : `.${name}`))
        .join("")
        .replace(/^\./u, "") || "the body"
    );
  }

  function unknown(frame: Frame, name: string): Shape {
    const permit = `field:${name}`;
    if (frame.shape.opensByType !== true || permits.some((allowed) => matchesPattern(allowed, permit)))
      return { scalar: { kind: "refused", permit, why: why.unknown } };
    frame.unknown ??= { name, called: called() };
    return { isData: true };
  }

  /** Records that the value just begun is set, if its object's shape needs that. */
  function say(): void {
    const frame = frames.at(-1);
    frame?.present?.add(frame.name);
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
        known !== undefined && Object.hasOwn(known, name) ? (known[name] ?? {}) : unknown(frame, name.slice(0, 100));
    },
    open(kind, at) {
      const shape = shapeOfNext();
      if (frames.length === 0 && kind === "list") throw new RequestRefusedError(400, "the body must be a JSON object");
      if (kind === "list" && frames.at(-1)?.shape.counts === "prompts") found.prompts += 1;
      if (shape.isData === true) {
        say();
        return false;
      }
      if (shape.scalar?.kind === "refused") {
        refuse(permits, shape.scalar, called);
        return false;
      }
      if ((kind === "list" ? shape.each : shape.fields) === undefined)
        throw new RequestRefusedError(400, `${called()} of the body must be no ${kind}`);
      frames.push(beginFrame(shape, kind, at + 1));
      return true;
    },
    close() {
      const frame = frames.pop();
      if (frame === undefined) return;
      if (frame.elements > 0) say();
      if (frame.names === null) return;
      requireKnown(frame);
      requireNeeds(frame);
      countMedia(frame);
      const place = { at: frame.at, isEmpty: frame.elements === 0 };
      if (frames.length === 0) found.top = place;
      else if (frame.shape.place !== undefined) found[frame.shape.place] = { value: null, from: 0, to: 0, place };
    },
    scalar(value) {
      const shape = shapeOfNext();
      const frame = frames.at(-1);
      if (frame === undefined) throw new RequestRefusedError(400, "the body must be a JSON object");
      if (value.kind === "literal" && value.text === "null") {
        if (shape.isData !== true) takeNull(shape, value, frame.name);
        return;
      }
      if (value.kind !== "string" || value.start !== "") say();
      if (value.kind === "string" && frame.shape.counts === "prompts") found.prompts += 1;
      if (shape.isData === true) return;
      if (shape.scalar === undefined)
        throw new RequestRefusedError(400, `${called()} of the body must be no ${value.kind}`);
      take(shape.scalar, value, frame);
    },
  };

  function takeNull({ scalar: rule, place }: Shape, { from, to }: Scalar, name: string): void {
    if (place !== undefined) found[place] = { value: null, from, to, place: null };
    if (rule?.kind === "flag") found[rule.fact] = { value: null, from, to };
    else if (rule?.kind === "count" && rule.fact === "maxOutput") found.limits.push({ name, value: null, from, to });
  }

  function take(rule: ScalarRule, value: Scalar, frame: Frame): void {
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
      case "labelOf":
        frame.labelOf = rule.type;
        return;
      case "mediaType":
        frame.mediaType = value.text ?? "";
        return;
      case "count": {
        const number = wholeNumber(value, called);
        if (rule.fact === "choices") found.choices = Math.max(found.choices, number);
        else if (rule.fact === "thinking") found.thinking = Math.max(found.thinking, number);
        else found.limits.push({ name: frame.name, value: number, from, to });
        return;
      }
      case "flag":
        found[rule.fact] = { value: truth(value, called), from, to };
        if (rule.fact === "store" && found.store?.value === true)
          refuseUnlessAllowed(permits, "field:store", `${called()} asks for what ${why.kept}`);
        return;
      case "oneOf":
        takeName(rule, value, frame);
        return;
      case "inline":
      case "dataUrl":
      case "bytes":
        requireInline(rule.kind, value, called);
        frame.media.push(value);
        return;
      case "refused":
        if (value.kind !== "literal" || value.text !== "false") refuse(permits, rule, called);
        return;
    }
  }

  function takeName(rule: Extract<ScalarRule, { kind: "oneOf" }>, value: Scalar, frame: Frame): void {
    const { name, isPermitted } = oneOfNames(permits, rule, value, called);
    if (frame.name === "type") {
      frame.type = name;
      frame.isPermittedType = isPermitted;
    }
    if (rule.permit === "source" && name !== "base64") frame.isText = true;
    const compacts = rule.compacts;
    if (compacts !== undefined && Object.hasOwn(compacts, name) && found.compacts !== "beside")
      found.compacts = compacts[name] ?? null;
  }

  /** @throws RequestRefusedError if a field is unknown, and the operator did not allow its object's type by name */
  function requireKnown({ unknown: field, isPermittedType, type, labelOf }: Frame): void {
    if (isPermittedType) return;
    if (labelOf !== null && labelOf !== type)
      refuseUnlessAllowed(permits, "source:url", `${called()} has text for its source, which ${why.fetched}`);
    if (field === null) return;
    refuseUnlessAllowed(permits, `field:${field.name}`, `${field.called} ${why.unknown}`);
  }

  /** @throws RequestRefusedError */
  function requireNeeds({ shape, type, present: said, isPermittedType }: Frame): void {
    const { needs } = shape;
    if (needs === undefined || said === null || isPermittedType || !Object.hasOwn(needs, type)) return;
    const need = needs[type];
    if (need === undefined || (need.ifPresent !== undefined && !said.has(need.ifPresent))) return;
    if (need.fields.every((names) => names.some((name) => said.has(name)))) return;
    refuseUnlessAllowed(permits, need.permit, `${called()} ${need.why}`);
  }

  function countMedia({ shape, media, mediaType, isText }: Frame): void {
    if (isText) return;
    for (const value of media) {
      const { isImage, textTokens, fillsContext, isSound } = mediaOf(value, mediaType);
      found.mediaWeight += value.weight;
      found.mediaTextTokens += textTokens;
      if (isImage) found.images += 1;
      found.fillsContext ||= fillsContext || shape.holds === "sound";
      found.hasSound ||= isSound || shape.holds === "sound";
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

function beginFrame(shape: Shape, kind: "object" | "list", at: number): Frame {
  return {
    shape,
    names: kind === "object" ? new Set() : null,
    present: shape.needs === undefined ? null : new Set(),
    name: "",
    next: {},
    elements: 0,
    at,
    type: "",
    isPermittedType: false,
    unknown: null,
    labelOf: null,
    media: [],
    mediaType: null,
    isText: false,
  };
}

/** @throws RequestRefusedError instead of MalformedJsonError */
function understood(read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof MalformedJsonError)) throw error;
    throw new RequestRefusedError(400, `the body is not unambiguous JSON: ${error.message}`);
  }
}

/** Converts `snake_case` as Protocol Buffers do: the letter after an underscore becomes a capital. */
function camel(name: string): string {
  return name.replaceAll(/(?<=.)_([a-z])/gu, (_, letter: string) => letter.toUpperCase());
}
