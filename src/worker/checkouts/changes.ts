import { dirname, join } from "node:path";
import { programText } from "../../programs/program-text.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";
import { changesIn } from "../disk/overlay.ts";
import { readLayers } from "./layers.ts";
import type { SharedCheckouts } from "./shared-checkouts.ts";

/** The changes in a clone's overlay. */
export interface OverlayChanges {
  /** The commit that is checked out below the changes. */
  readonly commit: string;
  /** See list-changes.pl. */
  readonly list: Buffer;
}

/** Most entries that are read: with more it is quicker to have git read all files. */
const mostEntries = 5_000;

/**
 * Lists what a clone's overlay has changed: the agent may go on with it meanwhile.
 * @param clone path of it
 * @returns null if its workspace is a plain folder, or too much was changed to list it
 */
export async function listChanges(checkouts: SharedCheckouts, clone: string): Promise<OverlayChanges | null> {
  const workspace = dirname(clone);
  const place = dirname(workspace);
  const directory = clone.slice(workspace.length + 1);
  const layer = (await readLayers(place))?.find((each) => each.directory === directory);
  if (layer === undefined) return null;
  const folders = [join(changesIn(place), directory), join(checkouts.layerOf(layer.name), directory)];
  const program = programText(import.meta.url, "list-changes.pl");
  try {
    const options = { encoding: "latin1", maxBuffer: mostEntries * 4_096 } as const;
    const { stdout } = await runProgram("perl", ["-e", program, ...folders, String(mostEntries)], options);
    return { commit: layer.sha, list: Buffer.from(stdout, "latin1") };
  } catch (error) {
    if ((error as { code?: unknown }).code === tooMuch) return null;
    throw error;
  }
}

/** The variables about a clone's changes for programs that stage its files; the list is their stdin (stage-all.sh). */
export function changesVariables(changes: OverlayChanges | null): Record<string, string> {
  return changes === null ? {} : { OFFSTAGE_CHECKOUT: changes.commit };
}

/** Exit code of the program if it lists nothing. */
const tooMuch = 3;
