import type { Scalar } from "./json-scanner.ts";

/**
 * The cost of an image, audio or document in a body for a model. Judged by its first bytes and by its declared type,
 * because providers use either: if they differ, it counts as both.
 */
export interface Media {
  readonly isImage: boolean;
  /** Tokens of the text that it is or may be; 0 if it is not text. */
  readonly textTokens: number;
  /** A document, audio or video: only the model's context limits its tokens. */
  readonly fillsContext: boolean;
  /** It may be audio, which some models bill at another price. */
  readonly isSound: boolean;
}

type Kind = "image" | "text" | "document" | "sound";

/** Four characters of base64 are three bytes, each of which can be a token. */
const tokensPerCharacter = 3 / 4;
/** Characters of base64 that are examined: the scanner keeps few more of a string. */
const sampled = 400;

const textTypes =
  /^(?:text\/.+|application\/(?:json|xml|rtf|toml|sql|graphql|yaml|(?:x-)?(?:javascript|typescript|python|sh|yaml|ndjson|sql))|application\/[\w.-]+\+(?:json|xml))$/u;
const dataUrl = /^data:(?<type>[^;,]*)(?:;[^;,]*)*?(?<base64>;base64)?,/iu;

/**
 * Judges a media value, which is base64 or a data URL.
 * @param declared the media type beside it; null: there is none
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

/** How a provider treats it by its media type. */
function declaredKind(type: string): Kind {
  const name = type.split(";")[0]?.trim().toLowerCase() ?? "";
  if (name.startsWith("image/")) return "image";
  if (textTypes.test(name)) return "text";
  return name.startsWith("application/") || name === "" ? "document" : "sound";
}

/** First bytes of PNG, JPEG, GIF, BMP, TIFF, WebP, and of images in an MP4 container (HEIC, AVIF), in hexadecimal. */
const imageHeads = /^(?:89504e47|ffd8ff|47494638|424d|49492a00|4d4d002a|52494646.{8}57454250)/u;
const pictureBrand = /^....ftyp(?:hei[cxms]|hev[ms]|mif1|msf1|avi[fs])/su;
/** First bytes of archives: ZIP, as office documents are, gzip, older office documents. */
const packedHeads = /^(?:504b0304|1f8b|d0cf11e0)/u;

/** How a provider treats it by its bytes. @param base64 its beginning, in base64 or base64url (RFC 4648, section 5) */
function kindOf(base64: string): Kind {
  const bytes = Buffer.from(base64.slice(0, sampled), "base64");
  const head = bytes.toString("hex", 0, 16);
  if (imageHeads.test(head) || pictureBrand.test(bytes.toString("latin1", 0, 16))) return "image";
  // A document's magic bytes need not come first.
  if (bytes.includes("%PDF") || packedHeads.test(head)) return "document";
  return bytes.some(isControl) ? "sound" : "text";
}

/** Control characters that occur in no text: all but tabs, line breaks, form feeds and escapes. */
function isControl(byte: number): boolean {
  return (byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d) && byte !== 0x1b) || byte === 0x7f;
}
