import { Readable } from "node:stream";
import { messageOf, SessionError } from "../../domain/errors/errors.ts";
import { git, GitError, mustGit, type GitOptions, type Identity } from "./git.ts";
import type { Signer } from "./signer.ts";

/** Commits that are signed at once: each takes a process or two. */
const mostCommits = 5_000;

/** The commits to sign. */
export interface UnsignedWork {
  /** The newest commit. */
  readonly head: string;
  /** Commits and globs of refs (`--glob=…`): what they lead to is left as it is. */
  readonly known: readonly string[];
  /** Committer of the signed commits: the signature is its word, whoever the author is. */
  readonly committer: Identity;
  /**
   * Committers of the session's commits. A commit by any other committer stays as it is, unless it builds on one of the
   * session's, which no other repository has. Omitted: all are the session's.
   */
  readonly own?: readonly Identity[];
}

/**
 * Makes the session's new commits again with the same files, messages, authors and dates, each with a signature. Signatures that an agent wrote are
 * left out. With most keys of ssh the same commits come out each time; with GnuPG others do.
 * @param options of the repository that has the commits
 * @returns the new commit for each old one; none for those that are known, or are strangers'
 * @throws SessionError resources_exhausted if there are too many; signing_failed if the key can't sign now
 */
export async function signCommits(
  signer: Signer,
  { head, known, committer, own }: UnsignedWork,
  options: GitOptions,
): Promise<ReadonlyMap<string, string>> {
  const range = ["rev-list", "--reverse", "--topo-order", `--max-count=${mostCommits + 1}`, head, "--not", ...known];
  const listed = (await mustGit(range, options)).split("\n").filter((sha) => sha !== "");
  if (listed.length > mostCommits) throw tooMany();
  const signed = new Map<string, string>();
  const emails = own === undefined ? null : new Set(own.map(({ email }) => writtenEmail(email)));
  for (const sha of listed) {
    const commit = parse(await readCommit(sha, options));
    if (emails !== null && !emails.has(commit.committer) && !commit.parents.some((parent) => signed.has(parent)))
      continue;
    const content = unsigned(commit, signed, committer);
    const signature = await signatureOf(signer, content, options.signal);
    const made = withSignature(content, signature, sha.length === 64 ? "gpgsig-sha256" : "gpgsig");
    const write = ["hash-object", "-t", "commit", "-w", "--stdin"];
    signed.set(sha, await mustGit(write, { ...options, input: Readable.from([made]) }));
  }
  return signed;
}

/** A key that could sign when the worker started, and can't, is in an agent that is away or locked: both pass. */
async function signatureOf(signer: Signer, content: Buffer, signal: AbortSignal): Promise<string> {
  try {
    return await signer.sign(content, signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw new SessionError(
      {
        code: "signing_failed",
        reason: `The commits could not be signed: ${messageOf(cause)}`,
        retryable: true,
        passing: true,
        remedy:
          "Have the key of OFFSTAGE_SIGNING_KEY_FILE, or the ssh agent that holds it, work again; nothing is pushed unsigned.",
      },
      { cause },
    );
  }
}

async function readCommit(sha: string, options: GitOptions): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const { code, stderr } = await git(["cat-file", "commit", sha], {
    ...options,
    onOutput: (chunk) => chunks.push(chunk),
  });
  if (code !== 0) throw new GitError("cat-file", stderr);
  return Buffer.concat(chunks);
}

/** A commit's content. Read as latin1, in which every byte is a character: names may be in any encoding. */
interface Commit {
  readonly headers: readonly string[];
  readonly parents: readonly string[];
  /** Address of its committer. */
  readonly committer: string;
  /** Its message, with the empty line before it. */
  readonly message: string;
}

function parse(content: Buffer): Commit {
  const text = content.toString("latin1");
  const end = text.indexOf("\n\n");
  const headers = (end === -1 ? text : text.slice(0, end)).split(/\n(?! )/u);
  const committers = headers.map((header) => /^committer [^<]*<([^>]*)>/u.exec(header)?.[1]);
  return {
    headers,
    parents: headers.flatMap((header) => /^parent ([0-9a-f]+)$/u.exec(header)?.[1] ?? []),
    committer: committers.find((email) => email !== undefined) ?? "",
    message: end === -1 ? "" : text.slice(end),
  };
}

/** An address as git writes it into a commit, without what it leaves out at the ends, and read as latin1. */
function writtenEmail(email: string): string {
  const left = email.replaceAll(/^[\p{Cc} .,:;<>"\\']+|[\p{Cc} .,:;<>"\\']+$/gu, "");
  return Buffer.from(left).toString("latin1");
}

/** A commit's content as it is signed. */
function unsigned({ headers, message }: Commit, signed: ReadonlyMap<string, string>, committer: Identity): Buffer {
  const { name, email } = committer;
  const kept = headers.flatMap((header) => {
    if (/^gpgsig(?:-sha256)? /u.test(header)) return [];
    const parent = /^parent ([0-9a-f]+)$/u.exec(header)?.[1];
    if (parent !== undefined) return [`parent ${signed.get(parent) ?? parent}`];
    const when = /^committer .*> (\d+ [+-]\d+)$/su.exec(header)?.[1];
    if (when === undefined) return [header];
    return [`committer ${Buffer.from(`${name} <${email}>`).toString("latin1")} ${when}`];
  });
  return Buffer.from(`${kept.join("\n")}${message}`, "latin1");
}

/** The signature is the last header; each of its further lines begins with a space (gitformat-signature(5)). */
function withSignature(content: Buffer, signature: string, header: string): Buffer {
  const end = content.indexOf("\n\n");
  const lines = signature.trim().replaceAll("\r", "").split("\n").join("\n ");
  return Buffer.concat([content.subarray(0, end), Buffer.from(`\n${header} ${lines}`), content.subarray(end)]);
}

function tooMany(): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `The work has more than ${mostCommits} new commits, which are not signed at once.`,
    retryable: false,
    remedy: "Tell the agent in a message to put its commits together.",
  });
}
