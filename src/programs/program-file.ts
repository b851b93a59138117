import { extname } from "node:path";

/**
 * The file of a program of ours that runs in a separate process or thread, beside the file that starts it. It has that
 * file's extension: Node runs the source and what is built of it.
 * @param starter `import.meta.url` of the file that starts it
 * @param name relative to that file, without an extension
 */
export function programFile(starter: string, name: string): URL {
  return new URL(`${name}${extname(starter)}`, starter);
}
