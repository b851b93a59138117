/** The container engine, and the image and runtime that it uses. */
export interface ContainerSettings {
  /** Unix socket of the engine: Docker's, Podman's, or another that speaks Docker's API. */
  readonly socket: string;
  /** Must have git, a shell and the programs of the repositories; Node is mounted from outside. */
  readonly image: string;
  /** `runsc` for gVisor; null: the engine's default. */
  readonly runtime: string | null;
}
