import { execFile } from "node:child_process";
import { mkdir, readFile, rm } from "node:fs/promises";
import { childEnvironment } from "../../domain/environments/child-environment.ts";
import { InvalidInputError, messageOf } from "../../domain/errors/errors.ts";

/** Signs commits with the operator's key, outside of every sandbox. */
export interface Signer {
  readonly format: "ssh" | "openpgp";
  /** Signs a commit's content. @returns the signature in ASCII armour, as a commit's `gpgsig` header holds it */
  sign(content: Buffer, signal?: AbortSignal): Promise<string>;
  /** Ends what signing left running. */
  close(): Promise<void>;
}

const setting = "OFFSTAGE_SIGNING_KEY_FILE";
const signLimitMs = 30_000;

/**
 * Opens the operator's key, and signs once with it: a key that can't sign is found when the worker starts, and no commit is
 * unsigned for it.
 * @param file of a private key by OpenSSH (or the public half of one in the agent), or exported by GnuPG
 * @param options.folder for GnuPG's copy of its key; readable by this user only
 * @param options.agent socket of an ssh agent; null: none
 * @throws InvalidInputError if the file is missing or empty, holds no key, or its key can't sign
 */
export async function openSigner(
  file: string,
  options: { readonly folder: string; readonly agent: string | null },
): Promise<Signer> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new InvalidInputError(`${setting}: ${file} can't be read`, { cause });
  });
  if (text.trim() === "") throw new InvalidInputError(`${setting}: ${file} is empty`);
  const isPgp = text.includes("-----BEGIN PGP PRIVATE KEY BLOCK-----");
  if (!isPgp && !text.includes("PRIVATE KEY-----") && !/^(?:ssh|ecdsa|sk)-\S+ \S/u.test(text)) {
    throw new InvalidInputError(`${setting}: ${file} holds no private key, of OpenSSH or of GnuPG`);
  }
  try {
    const signer = isPgp ? await openPgp(file, options.folder) : openSsh(file, options.agent);
    const tried = await signer.sign(Buffer.from("offstage\n"));
    if (!tried.includes("-----BEGIN ")) throw new Error("it printed no signature");
    return signer;
  } catch (cause) {
    if (cause instanceof InvalidInputError) throw cause;
    throw new InvalidInputError(`${setting}: ${file} can't sign: ${messageOf(cause)}`, { cause });
  }
}

/** Signatures as git makes them (git-config(1), gpg.format; ssh-keygen(1), -Y sign). */
function openSsh(file: string, agent: string | null): Signer {
  const environment = childEnvironment(process.env, {
    // Nothing is asked on a terminal: a key with a passphrase must be in an agent.
    SSH_ASKPASS: "/bin/false",
    SSH_ASKPASS_REQUIRE: "force",
    ...(agent !== null && { SSH_AUTH_SOCK: agent }),
  });
  return {
    format: "ssh",
    sign: (content, signal) =>
      run("ssh-keygen", ["-Y", "sign", "-n", "git", "-f", file], environment, { content, signal }),
    close: () => Promise.resolve(),
  };
}

async function openPgp(file: string, folder: string): Promise<Signer> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const environment = childEnvironment(process.env, { GNUPGHOME: folder });
  const always = ["--batch", "--no-tty", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""];
  const gpg = (parameters: readonly string[], call: Call = {}) =>
    run("gpg", [...always, ...parameters], environment, call);
  await gpg(["--import", file]);
  const listed = await gpg(["--list-secret-keys", "--with-colons"]);
  const primary = [...listed.matchAll(/^sec:[^\n]*\n(?:grp:[^\n]*\n)?fpr:+([0-9A-F]{40,64}):/gmu)].map(
    (found) => found[1],
  );
  const [fingerprint, another] = primary;
  if (fingerprint === undefined) throw new InvalidInputError(`${setting}: ${file} holds no secret key`);
  if (another !== undefined) throw new InvalidInputError(`${setting}: ${file} holds more than one key`);
  return {
    format: "openpgp",
    sign: (content, signal) =>
      gpg(["--local-user", fingerprint, "--armor", "--detach-sign", "--output", "-"], { content, signal }),
    async close() {
      // It ends by itself too, as soon as its folder is gone.
      await run("gpgconf", ["--kill", "gpg-agent"], environment, {}).catch(() => undefined);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface Call {
  readonly content?: Buffer;
  readonly signal?: AbortSignal | undefined;
}

/** Runs a program with the content on its stdin. @returns its stdout @throws Error with its last words */
function run(
  program: string,
  parameters: readonly string[],
  env: Record<string, string>,
  { content = Buffer.alloc(0), signal }: Call,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env, timeout: signLimitMs, ...(signal !== undefined && { signal }) };
    const child = execFile(program, parameters, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      if (signal?.aborted === true) return reject(signal.reason as Error);
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return reject(new Error(`${program} is not installed`));
      const words = stderr.trim().split("\n").slice(-3).join(" ").slice(-500);
      return reject(new Error(words === "" ? error.message : words, { cause: error }));
    });
    // A program that ends early says why.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(content);
  });
}
