import { programText } from "../../programs/program-text.ts";

/** The shell function `stage` of `stage.sh`, to be put before a program that calls it. */
export function stageFunction(): string {
  return programText(import.meta.url, "stage.sh");
}
