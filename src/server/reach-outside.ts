import type { Config } from "../config/config.ts";
import { useProcessWide } from "../outbound/process-wide.ts";

/**
 * Makes this process use the operator's proxies and certificates.
 * @returns puts everything back
 * @throws InvalidInputError if this version of Node can't
 */
export function reachOutside({
  outbound,
  forges,
  models,
  objects,
  oidc,
  githubSignIn,
  replyUrls,
  traces,
}: Config): () => void {
  const contacted = [
    ...forges.flatMap((forge) => [forge.webUrl, ...("apiUrl" in forge ? [forge.apiUrl] : [])]),
    ...Object.values(models).map(({ baseUrl }) => baseUrl),
    objects?.endpoint,
    oidc?.issuer,
    githubSignIn?.webUrl,
    githubSignIn?.apiUrl,
    replyUrls.slack,
    replyUrls.linear,
    traces?.endpoint,
  ];
  return useProcessWide(
    outbound,
    contacted.filter((url) => url !== undefined),
  );
}
