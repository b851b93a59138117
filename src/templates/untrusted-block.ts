import { createHash } from "node:crypto";

/** Characters of a block's name: 80 bits, so that no data can be found that names its own block. */
const nameLength = 20;

/**
 * A text between two delimiter lines that it can't imitate: the block is named by the text's own hash, so the text's
 * author can't write the line that ends it, nor one that looks alike. The same text always makes the same block: a
 * prompt that is rendered again is the same.
 */
export function untrustedBlock(text: string): string {
  const name = `untrusted-${createHash("sha256").update(text).digest("hex").slice(0, nameLength)}`;
  return `<${name}>\n${text}\n</${name}>`;
}
