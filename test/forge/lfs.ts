import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";

/** What the forge's LFS server keeps beside the repositories. */
export interface LfsState {
  /** Tokens of the addresses that a batch answered, which are good for these alone. */
  readonly given: Set<string>;
  /** The next upload is answered with this status, if set. */
  refuseUpload: number | null;
}

interface BatchRequest {
  readonly operation: "download" | "upload";
  readonly objects: readonly { readonly oid: string; readonly size: number }[];
}

const mediaType = "application/vnd.git-lfs+json";

/** Path of a repository's content in LFS, below the forge's folder. */
export function contentPath(root: string, repository: string, oid: string): string {
  return join(root, "lfs", repository, oid);
}

/**
 * The part of Git LFS that each forge has: the batch API with basic transfers
 * (https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md).
 * @param isAllowed whether the request has the forge's token
 */
export async function serveLfs(
  { root, url, lfs }: { readonly root: string; readonly url: string; readonly lfs: LfsState },
  { repository, path }: { readonly repository: string; readonly path: string },
  isAllowed: boolean,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = (status: number, body: unknown): void =>
    void response.writeHead(status, { "Content-Type": mediaType }).end(JSON.stringify(body));
  if (path === "objects/batch") {
    if (!isAllowed) {
      response.setHeader("LFS-Authenticate", 'Basic realm="forge"');
      return answer(401, { message: "Credentials needed" });
    }
    const { operation, objects } = JSON.parse((await buffer(request)).toString()) as BatchRequest;
    const token = randomBytes(12).toString("hex");
    lfs.given.add(token);
    const described = await Promise.all(
      objects.map(async ({ oid, size }) => {
        const file = contentPath(root, repository, oid);
        const isThere = existsSync(file) && (await stat(file)).size === size;
        const action = { href: `${url}/${repository}.git/info/lfs/contents/${oid}`, header: { "X-Given": token } };
        if (operation === "upload") return { oid, size, ...(isThere ? {} : { actions: { upload: action } }) };
        return isThere
          ? { oid, size, actions: { download: action } }
          : { oid, size, error: { code: 404, message: "Object does not exist" } };
      }),
    );
    return answer(200, { transfer: "basic", objects: described });
  }
  const oid = /^contents\/([0-9a-f]{64})$/u.exec(path)?.[1];
  if (oid === undefined) return answer(404, { message: "Not found" });
  if (!lfs.given.has(request.headers["x-given"]?.toString() ?? "")) return answer(403, { message: "Not given" });
  const file = contentPath(root, repository, oid);
  if (request.method === "GET") {
    response.writeHead(200, { "Content-Type": "application/octet-stream" }).end(await readFile(file));
    return;
  }
  const content = await buffer(request);
  if (lfs.refuseUpload !== null) return answer(lfs.refuseUpload, { message: "This owner's LFS quota is used up" });
  if (createHash("sha256").update(content).digest("hex") !== oid) return answer(422, { message: "Another content" });
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
  response.writeHead(200).end();
}
