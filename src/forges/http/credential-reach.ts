import type { ConnectionCredential } from "../../domain/repositories/connection.ts";
import type { Reach } from "./reach.ts";

/** The secrets of a credential, which must not be shown. */
export function secretsIn(credential: ConnectionCredential | Error): string[] {
  if (credential instanceof Error || credential.type === "configured") return [];
  if (credential.type === "app") return [credential.privateKey];
  const { token, username } = credential;
  // As the header of basic authentication has it.
  return username === undefined ? [token] : [token, Buffer.from(`${username}:${token}`).toString("base64")];
}

/**
 * The reach of one credential. Whatever the forge answers, its credential is not in it: a server that repeats what it was sent would
 * bring it into messages that are shown.
 */
export function reachOf(
  reach: Pick<Reach, "fetch">,
  credential: ConnectionCredential | Error,
  refused: () => void = () => undefined,
): Reach {
  // Azure DevOps gets a token by basic authentication.
  const secrets = secretsIn(credential).flatMap((secret) => [
    secret,
    Buffer.from(`:${secret}`).toString("base64").replace(/=+$/u, ""),
  ]);
  return {
    refused,
    async fetch(url, init) {
      const answer = await reach.fetch(url, init);
      const body = await answer.text();
      const shown = secrets.reduce((words, secret) => words.replaceAll(secret, "[secret]"), body);
      const hasBody = shown !== "" && ![204, 205, 304].includes(answer.status);
      return new Response(hasBody ? shown : null, { status: answer.status, headers: answer.headers });
    },
  };
}
