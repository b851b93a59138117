import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";

/**
 * The text of an editor's prompt, for an agent that has the repository and not this machine's files: files that the
 * editor names become paths in the checkout, and contents that it sends become part of the text.
 * @param root the checkout's folder; null: there is none
 */
export function promptText(blocks: readonly ContentBlock[], root: string | null): string {
  return blocks
    .map((block) => {
      switch (block.type) {
        case "text":
          return block.text;
        case "resource_link":
          return `[${block.name}](${placeOf(block.uri, root)})`;
        case "resource":
          return "text" in block.resource
            ? `\n${placeOf(block.resource.uri, root)}:\n\`\`\`\n${block.resource.text}\n\`\`\`\n`
            : "";
        default:
          // Pictures and sound are not taken: the capabilities say so.
          return "";
      }
    })
    .join("")
    .trim();
}

function placeOf(uri: string, root: string | null): string {
  const path = pathOf(uri);
  if (path === null) return uri;
  const inside = root === null ? "" : relative(root, path);
  return inside === "" || inside.startsWith("..") ? path : inside;
}

/** Null: it is no file of this machine, such as one of another host. */
function pathOf(uri: string): string | null {
  if (!uri.startsWith("file:")) return null;
  try {
    return fileURLToPath(uri);
  } catch {
    return null;
  }
}
