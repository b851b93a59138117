import { programText } from "../../programs/program-text.ts";
import type { Sandbox, SandboxRequest } from "../../sandboxes/sandbox.ts";
import { runInSandbox } from "./run-in-sandbox.ts";

const limitMs = 60_000;

/** A part of a file in a session's home whose rest may be a setup's or an agent's own. */
export interface FilePart {
  /**
   * Whole lines of a file in which comments begin with `#`. They are appended to the file, and replace our earlier
   * lines unless those were edited. If empty, our earlier lines are removed.
   */
  readonly part: string;
  /** A regular expression: if a line of the rest matches it, the rest says it itself, and the part is left out. */
  readonly unless: string;
  /** Other files, relative to the home or absolute, which count like the rest. */
  readonly beside?: readonly string[];
  /** A line below which the part belongs, which is written if there is none. A tool that takes it only once demands that. */
  readonly section?: string;
  /** Another name of the file, under which it is written if there is such a file: a tool reads only one of the two. */
  readonly instead?: string;
}

/**
 * A file of ours that a tool reads in the place of an image's own: that with ours put into it, so that neither is lost. Comments
 * in it are not kept if `ignored` matches them.
 */
export interface FileOver {
  /**
   * Where the image's own file may be; the first that exists counts. A path is relative to what a variable names, or to
   * a program.
   */
  readonly over: readonly { readonly path: string; readonly variable?: string; readonly program?: string }[];
  /** The whole content if the image has none. */
  readonly without: string;
  /** A regular expression of what is taken out of the image's own first. */
  readonly ignored?: string;
  /** Texts inserted before the place that a regular expression finds; the first match counts. */
  readonly insertions: readonly { readonly before: string; readonly text: string }[];
}

/** Content, or a part of it, by path relative to the home. */
export type HomeFiles = Readonly<Record<string, string | FilePart | FileOver>>;

/**
 * Writes a harness's settings into the session's home. It is done inside the sandbox: an earlier turn may have left a symbolic
 * link there, which a write from outside would follow with the server's rights.
 * @param files content by path, relative to the home
 * @throws Error if they could not be written, or not within 60 s
 */
export async function writeHarnessFiles(
  sandbox: Sandbox,
  place: Pick<SandboxRequest, "workspace" | "home" | "signal">,
  files: HomeFiles,
): Promise<void> {
  if (Object.keys(files).length === 0) return;
  const { signal, ...folders } = place;
  const request = {
    ...folders,
    command: process.execPath,
    arguments: ["-e", programText(import.meta.url, "write-files.cjs")],
    environment: { HOME: place.home },
    workingDirectory: place.home,
    readOnly: [],
  };
  // The limit: if an agent left a pipe in a file's place, writing may never end.
  const { code, printed, thrown } = await runInSandbox(sandbox, request, { limitMs, signal }, (child) => {
    child.stdin.end(JSON.stringify(files));
    child.stdout.resume();
  });
  if (thrown !== null) throw thrown.error;
  if (code !== 0) throw new Error(`the harness's settings could not be written: ${printed.slice(-500)}`);
}
