import { programText } from "../../programs/program-text.ts";

/** The shell function `stage_all` of `stage-all.sh`, to be put before a program that calls it. */
export function stageAllFunction(): string {
  return programText(import.meta.url, "stage-all.sh");
}
