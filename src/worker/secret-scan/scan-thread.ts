import { parentPort, workerData } from "node:worker_threads";
import { createSecretSearch } from "../../domain/masking/secret-search.ts";
import { createContentScan, type ContentScan } from "./content-scan.ts";
import type { ScanChunk } from "./content-scanner.ts";

// The program of the thread that `content-scanner.ts` starts. It answers each piece: null, or the result at a content's last piece.

const search = createSecretSearch((workerData as { readonly secrets: readonly string[] }).secrets);
let scan: ContentScan | null = null;

parentPort?.on("message", ({ bytes, isLast }: ScanChunk) => {
  scan ??= createContentScan(search);
  void scan.take(bytes, isLast).then((found) => {
    if (isLast) scan = null;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
    parentPort?.postMessage(found);
  });
});
