import { isAllowed, notReadRule, type AllowedFinding } from "../../domain/repositories/finding.ts";
import type { Finding, FoundInContent } from "./content-scan.ts";
import { createContentScanner, NotReadError, type ContentScanner } from "./content-scanner.ts";
import { objectContent, pushedObjects, type ObjectsOptions, type PushedObject } from "../git/pushed-objects.ts";

/** The position of a finding in a push. */
export interface FindingLocation {
  /** Path in the repository; empty for a commit's own text (message, author). */
  readonly path: string;
  readonly commit: string;
  /** Whether it is in a name instead of a file's content. */
  readonly inName: boolean;
}

/** The findings of a search through a push. */
export interface PushFindings {
  /** Known secrets, by their index in `secrets`. */
  readonly known: readonly (FindingLocation & { readonly owner: number })[];
  /** Possible secrets that the repository does not allow. */
  readonly shapes: readonly (FindingLocation & Finding)[];
  /** Files that could not be searched and that the repository does not allow. */
  readonly notRead: readonly (FindingLocation & { readonly why: string })[];
}

/** The objects to search, and the secrets. */
export interface PushScan extends ObjectsOptions {
  readonly head: string;
  /** Commits whose contents are not new. */
  readonly known: readonly string[];
  /** Contents that are pushed in addition to git's objects. */
  readonly further?: AsyncIterable<PushedObject>;
  /** Values of known secrets. */
  readonly secrets: readonly string[];
  /** Findings that the repository allows. */
  readonly allowed: readonly AllowedFinding[];
  /** Most bytes of a content that is searched; 512 MiB if omitted. */
  readonly largest?: number;
  /** Most time for each MiB, in ms; one minute if omitted. */
  readonly chunkMs?: number;
}

/** More than forges accept. 200 MiB of random bytes took 32 s of processor time. */
const defaultLargest = 512 * 1024 * 1024;
/** Most findings: the failure's text names only a few. */
const findingLimit = 20;

/**
 * Searches every object that a push would bring for known secrets and for what looks like one. What the base has already is not
 * new: an identical file is not read, and a value in the base's version of the same file does not count. Stops after 20
 * findings.
 * @throws ObjectsError if git can't list or read the objects
 */
export async function scanPush(push: PushScan): Promise<PushFindings> {
  const { head, known, secrets, allowed, signal, largest = defaultLargest } = push;
  const found = {
    known: [] as (FindingLocation & { owner: number })[],
    shapes: [] as (FindingLocation & Finding)[],
    notRead: [] as (FindingLocation & { why: string })[],
  };
  const scanner = createContentScanner(secrets, signal, push.chunkMs);
  try {
    for await (const object of both(pushedObjects(head, known, push), push.further)) {
      if (found.known.length + found.shapes.length + found.notRead.length >= findingLimit) break;
      const path = Buffer.from(object.path, "latin1").toString("utf8");
      const location: FindingLocation = { path, commit: object.commit, inName: object.type !== "blob" };
      const allows = (rule: string, fingerprint: string | null): boolean =>
        isAllowed(allowed, { path, rule, fingerprint });
      const seen =
        object.bytes > largest ? `it has more than ${megabytes(largest)} MiB` : await scanObject(scanner, object);
      if (typeof seen === "string") {
        if (!allows(notReadRule, null)) found.notRead.push({ ...location, why: seen });
        // To reach the next object, git's output of this one would have to be read.
        if (object.bytes > largest && found.notRead.length > 0) break;
        continue;
      }
      const fresh = await withoutKnown(scanner, object, seen, push);
      for (const owner of new Set(fresh.parts.map((part) => part.owner))) found.known.push({ ...location, owner });
      for (const finding of fresh.findings) {
        if (!allows(finding.rule, finding.fingerprint)) found.shapes.push({ ...location, ...finding });
      }
    }
    return found;
  } finally {
    await scanner.close();
  }
}

async function* both(objects: AsyncIterable<PushedObject>, further: AsyncIterable<PushedObject> | undefined) {
  yield* objects;
  if (further !== undefined) yield* further;
}

/** Searches one object. @returns what was found; a text, the end of a sentence, if it could not be searched */
async function scanObject(scanner: ContentScanner, object: PushedObject): Promise<FoundInContent | string> {
  try {
    return await scanner.scan(object.type === "tree" ? pathsIn(object) : object.content);
  } catch (error) {
    if (error instanceof NotReadError) return error.message;
    throw error;
  }
}

/**
 * The full paths of a tree's entries, one a line: a secret may be spread over the names of nested folders. A submodule's entry
 * is followed by its commit, which an agent can choose freely.
 */
async function* pathsIn({ path, sha, content }: PushedObject): AsyncGenerator<Uint8Array> {
  const before = Buffer.from(path === "" ? "" : `${path}/`, "latin1");
  const hashLength = sha.length / 2;
  let rest: Buffer = Buffer.alloc(0);
  for await (const bytes of content) {
    rest = Buffer.concat([rest, bytes]);
    const paths: Uint8Array[] = [];
    // An entry: its mode, a space, its name, NUL, its hash.
    for (let end = rest.indexOf(0); end !== -1 && end + hashLength < rest.length; end = rest.indexOf(0)) {
      paths.push(before, rest.subarray(rest.indexOf(" ") + 1, end), newline);
      const isSubmodule = rest.toString("latin1", 0, 7) === "160000 ";
      if (isSubmodule) paths.push(Buffer.from(rest.toString("hex", end + 1, end + 1 + hashLength)), newline);
      rest = rest.subarray(end + 1 + hashLength);
    }
    yield Buffer.concat(paths);
  }
}

const newline = Buffer.from("\n");

/** The findings that the base does not have at the same path. */
async function withoutKnown(
  scanner: ContentScanner,
  object: PushedObject,
  seen: FoundInContent,
  push: PushScan,
): Promise<FoundInContent> {
  const isClean = seen.parts.length === 0 && seen.findings.length === 0;
  if (isClean || object.type === "commit" || seen.more) return seen;
  let { parts, findings } = seen;
  for (const commit of push.known) {
    // File names are bytes; one that is not UTF-8 is not found in the base, so it counts as new.
    const name = `${commit}:${Buffer.from(object.path, "latin1").toString("utf8")}`;
    const content = objectContent(object.type, name, push);
    const before = await scanObject(scanner, { ...object, content });
    if (typeof before === "string") continue;
    // Only this part is known: a file with one value of a secret must not let the secret's other values pass.
    const known = new Set(before.parts.flatMap(({ evidence }) => evidence));
    parts = parts.filter(({ part }) => !known.has(part));
    findings = findings.filter(
      ({ rule, fingerprint }) => !before.findings.some((one) => one.rule === rule && one.fingerprint === fingerprint),
    );
  }
  return { parts, findings, more: false };
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
