import { parentPort, workerData } from "node:worker_threads";
import { createSecretSearch } from "../../domain/masking/secret-search.ts";
import { createContentLook, type ContentLook } from "./content-look.ts";
import type { LookPiece } from "./looker.ts";

// The program of the thread that `looker.ts` starts. It answers each piece: null, or the result at a content's last piece.

const search = createSecretSearch((workerData as { readonly secrets: readonly string[] }).secrets);
let look: ContentLook | null = null;

parentPort?.on("message", ({ bytes, isLast }: LookPiece) => {
  look ??= createContentLook(search);
  void look.take(bytes, isLast).then((found) => {
    if (isLast) look = null;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
    parentPort?.postMessage(found);
  });
});
