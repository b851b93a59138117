import { programText } from "../../programs/program-text.ts";

/** The shell functions `each_gitlink` and `has_gitlink` of `each-gitlink.sh`, to be put before a program that calls them. */
export function gitlinkFunctions(): string {
  return programText(import.meta.url, "each-gitlink.sh");
}
