/** Which engine runs containers, and of what. */
export interface ContainerSettings {
  /** Unix socket of the engine: Docker's, Podman's, or another that speaks Docker's API. */
  readonly socket: string;
  /** Needs git, a shell and the programs of the repositories; node comes from outside. */
  readonly image: string;
  /** `runsc` for gVisor; the engine's own without it. */
  readonly runtime: string | null;
}
