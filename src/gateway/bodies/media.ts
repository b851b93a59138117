import type { Scalar } from "./json-scanner.ts";

/**
 * What an image, sound or document in a body costs a model to read, as far as its first bytes and what it is declared to be
 * tell: neither is to be believed alone, because providers go by either. What looks like two things is counted as both.
 */
export interface Media {
  readonly isImage: boolean;
  /** Tokens of the text that it is or may be: 0 if it is none. */
  readonly textTokens: number;
  /** A document, sound or video: what comes of it has no bound but the model's context. */
  readonly fillsContext: boolean;
  /** It may be heard, which some models bill at a price of its own. */
  readonly isSound: boolean;
}

type Kind = "image" | "text" | "document" | "sound";

/** Four characters of base64 are three bytes, of which each can be a token. */
const tokensPerCharacter = 3 / 4;
/** Characters of base64 that are looked at: what is kept of a string is not much more. */
const sampled = 400;

const textTypes =
  /^(?:text\/.+|application\/(?:json|xml|rtf|toml|sql|graphql|yaml|(?:x-)?(?:javascript|typescript|python|sh|yaml|ndjson|sql))|application\/[\w.-]+\+(?:json|xml))$/u;
const dataUrl = /^data:(?<type>[^;,]*)(?:;[^;,]*)*?(?<base64>;base64)?,/iu;

/**
 * @param value base64, or a data URL
 * @param declared the media type that stands beside it, if one does
 */
export function mediaOf({ start, from, to, weight }: Scalar, declared: string | null): Media {
  const written = start.replaceAll("\\/", "/");
  const url = dataUrl.exec(written);
  const isUrl = written.slice(0, 5).toLowerCase() === "data:";
  const type = declared ?? url?.groups?.["type"] ?? "";
  const content = url === null ? written : written.slice(url[0].length);
  const isBase64 = !isUrl || url?.groups?.["base64"] !== undefined;
  const kinds = [declaredKind(type), isUrl && url === null ? "sound" : isBase64 ? kindOf(content) : "text"] as const;
  const has = (kind: Kind): boolean => kinds.includes(kind);
  return {
    isImage: has("image"),
    textTokens: has("text") ? Math.ceil(isBase64 ? (to - from) * tokensPerCharacter : weight / 2) : 0,
    fillsContext: has("document") || has("sound"),
    isSound: has("sound"),
  };
}

/** What a provider would make of it by its media type. */
function declaredKind(type: string): Kind {
  const name = type.split(";")[0]?.trim().toLowerCase() ?? "";
  if (name.startsWith("image/")) return "image";
  if (textTypes.test(name)) return "text";
  return name.startsWith("application/") || name === "" ? "document" : "sound";
}

/** PNG, JPEG, GIF, BMP, TIFF, WebP, and pictures in the container of MP4 (HEIC, AVIF), in hexadecimal. */
const imageHeads = /^(?:89504e47|ffd8ff|47494638|424d|49492a00|4d4d002a|52494646.{8}57454250)/u;
const pictureBrand = /^....ftyp(?:hei[cxms]|hev[ms]|mif1|msf1|avi[fs])/su;
/** What holds others in it, packed: ZIP, as office documents are, gzip, office documents of old. */
const packedHeads = /^(?:504b0304|1f8b|d0cf11e0)/u;

/** What a provider would make of it by its bytes. @param base64 its beginning, also with `-` and `_` (RFC 4648, section 5) */
function kindOf(base64: string): Kind {
  const bytes = Buffer.from(base64.slice(0, sampled), "base64");
  const head = bytes.toString("hex", 0, 16);
  if (imageHeads.test(head) || pictureBrand.test(bytes.toString("latin1", 0, 16))) return "image";
  // A document's head need not come first.
  if (bytes.includes("%PDF") || packedHeads.test(head)) return "document";
  return bytes.some(isControl) ? "sound" : "text";
}

/** Is in no text: all control characters but tabs, line ends, form feeds and escapes. */
function isControl(byte: number): boolean {
  return (byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d) && byte !== 0x1b) || byte === 0x7f;
}
