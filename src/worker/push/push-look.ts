import { isAllowed, notReadRule, type AllowedFinding } from "../../domain/finding.ts";
import type { Finding, Found } from "./content-look.ts";
import { createLooker, NotReadError, type Looker } from "./looker.ts";
import { objectContent, pushedObjects, type ObjectsOptions, type PushedObject } from "./pushed-objects.ts";

/** Where something was found in what is to be pushed. */
export interface Place {
  /** In the repository; empty for a commit's own text: its message, and who made it. */
  readonly path: string;
  readonly commit: string;
  /** Whether it stands in a name and not in a file. */
  readonly inName: boolean;
}

export interface PushFindings {
  /** Known secrets, by their places in the list. */
  readonly known: readonly (Place & { readonly owner: number })[];
  /** What looks like a secret, and the repository does not allow. */
  readonly shapes: readonly (Place & Finding)[];
  /** What could not be looked through, and the repository does not allow. */
  readonly notRead: readonly (Place & { readonly why: string })[];
}

export interface PushLook extends ObjectsOptions {
  readonly head: string;
  /** Commits whose contents are not new. */
  readonly known: readonly string[];
  /** Values of known secrets. */
  readonly secrets: readonly string[];
  readonly allowed: readonly AllowedFinding[];
  /** Bytes of the largest content that is looked through. */
  readonly largest?: number;
  /** Bound on the time for each MiB, in ms. */
  readonly pieceMs?: number;
}

/** More than forges take. 200 MiB of random bytes took 32 s of processor time. */
const usualLargest = 512 * 1024 * 1024;
/** What is told of: a failure's text has room for a few. */
const toldLimit = 20;

/**
 * Looks through everything that a push would bring, object by object, for known secrets and for what looks like one. What
 * the base has already is not new: an identical file is not read, and a value that the base's version of the same file
 * shows does not count.
 * @throws ObjectsError
 */
export async function lookThroughPush(push: PushLook): Promise<PushFindings> {
  const { head, known, secrets, allowed, signal, largest = usualLargest } = push;
  const found = {
    known: [] as (Place & { owner: number })[],
    shapes: [] as (Place & Finding)[],
    notRead: [] as (Place & { why: string })[],
  };
  const looker = createLooker(secrets, signal, push.pieceMs);
  try {
    for await (const object of pushedObjects(head, known, push)) {
      if (found.known.length + found.shapes.length + found.notRead.length >= toldLimit) break;
      const path = Buffer.from(object.path, "latin1").toString("utf8");
      const place: Place = { path, commit: object.commit, inName: object.type !== "blob" };
      const allows = (rule: string, fingerprint: string | null): boolean =>
        isAllowed(allowed, { path, rule, fingerprint });
      const seen = object.bytes > largest ? `it has more than ${megabytes(largest)} MiB` : await lookAt(looker, object);
      if (typeof seen === "string") {
        if (!allows(notReadRule, null)) found.notRead.push({ ...place, why: seen });
        // git would hand over all of it before the next one.
        if (object.bytes > largest && found.notRead.length > 0) break;
        continue;
      }
      const fresh = await withoutKnown(looker, object, seen, push);
      for (const owner of new Set(fresh.parts.map((part) => part.owner))) found.known.push({ ...place, owner });
      for (const finding of fresh.findings) {
        if (!allows(finding.rule, finding.fingerprint)) found.shapes.push({ ...place, ...finding });
      }
    }
    return found;
  } finally {
    await looker.close();
  }
}

/** @returns what it shows; a sentence's end if it could not be looked through */
async function lookAt(looker: Looker, object: PushedObject): Promise<Found | string> {
  try {
    return await looker.look(object.type === "tree" ? pathsIn(object) : object.content);
  } catch (error) {
    if (error instanceof NotReadError) return error.message;
    throw error;
  }
}

/**
 * The whole paths of what a tree names, one for each line: a value may stand in the names of folders together. Behind a
 * submodule's is its commit, which an agent chooses freely.
 */
async function* pathsIn({ path, sha, content }: PushedObject): AsyncGenerator<Uint8Array> {
  const before = Buffer.from(path === "" ? "" : `${path}/`, "latin1");
  const hashLength = sha.length / 2;
  let rest: Buffer = Buffer.alloc(0);
  for await (const bytes of content) {
    rest = Buffer.concat([rest, bytes]);
    const paths: Uint8Array[] = [];
    // An entry is its mode, a blank, its name, NUL and its hash.
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

/** What of it the base does not show at the same place. */
async function withoutKnown(looker: Looker, object: PushedObject, seen: Found, push: PushLook): Promise<Found> {
  const isClean = seen.parts.length === 0 && seen.findings.length === 0;
  if (isClean || object.type === "commit" || seen.more) return seen;
  let { parts, findings } = seen;
  for (const commit of push.known) {
    // Names of files are bytes; one that is no UTF-8 is not found again, and counts as new.
    const name = `${commit}:${Buffer.from(object.path, "latin1").toString("utf8")}`;
    const content = objectContent(object.type, name, push);
    const before = await lookAt(looker, { ...object, content });
    if (typeof before === "string") continue;
    // A part alone: a file that shows one value of a secret must not let the others through.
    const told = new Set(before.parts.flatMap(({ tells }) => tells));
    parts = parts.filter(({ part }) => !told.has(part));
    findings = findings.filter(
      ({ rule, fingerprint }) => !before.findings.some((one) => one.rule === rule && one.fingerprint === fingerprint),
    );
  }
  return { parts, findings, more: false };
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
