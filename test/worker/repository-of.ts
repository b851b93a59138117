import type { SessionRepository } from "../../src/worker/clones/clone.ts";

/** A repository of a session as its claim has it, for tests that need no other of its fields than the name. */
export function repositoryOf(name: string): SessionRepository {
  return {
    id: `id of ${name}`,
    name,
    url: `https://git.example.com/acme/${name}`,
    branch: null,
    directory: name,
    position: 0,
    baseSha: null,
    headSha: null,
    egress: [],
    setupScript: null,
    variables: {},
    sparse: [],
  };
}
